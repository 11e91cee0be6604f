"""Which of many texts fit a query, by words and by vectors; and the vectors that are kept on disk."""

import json
import os
import struct
import subprocess
import sys
import threading

import pytest

from tw_autogen.errors import ConfigError, ModelError, NoModelError
from tw_autogen.model import EmbeddingSettings, LexicalRanker, ModelSettings, Ranker, resolve_ranker
from tw_autogen.model.embedding import Embedder, EmbeddingRanker, FolderEmbedder, OpenAIEmbedder
from tw_autogen.model.embedding_cache import VectorCache
from tw_autogen.private_files import cache_folder
from tw_autogen.session import read_settings

from .scripted_server import Reply, refused, scripted_server

TEXTS = ("sql_pull_data: Pull rows from a database.", "tell_joke: Tell a joke.", "draw: Draw a chart.")


class Letters:
    """Counts the letters a to z: an embedder whose vectors can be worked out by hand."""

    name = "letters 1"

    def __init__(self):
        self.asked = []

    def embed(self, texts, *, query=False):
        self.asked.append((tuple(texts), query))
        return [[float(text.lower().count(chr(97 + at))) for at in range(26)] for text in texts]


def served(*vectors, order=None):
    order = order or range(len(vectors))
    data = [{"object": "embedding", "index": at, "embedding": list(vectors[at])} for at in order]
    return Reply(
        body={"object": "list", "model": "small", "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}}
    )


def asked_of(server, **settings):
    return OpenAIEmbedder(ModelSettings(base_url=server.base_url, name="small", seconds=20.0, **settings))


def test_words_rank_and_what_shares_none_is_left_out():
    ranker = LexicalRanker()
    ranker.prepare(TEXTS)

    ((at, score),) = ranker.rank("Which databases are there?", TEXTS)

    assert isinstance(ranker, Ranker)
    assert (at, score > 0) == (0, True)
    assert [at for at, _ in ranker.rank("Draw me a chart about a joke, please", TEXTS)] == [2, 1]


@pytest.mark.parametrize(("query", "texts"), [("", TEXTS), ("please", TEXTS), ("joke", ()), ("joke", ("…", ""))])
def test_no_words_or_no_texts_is_nothing_found(query, texts):
    assert LexicalRanker().rank(query, texts) == []


CODES = [f"# E10004{number}\nThe machine stops with E10004{number}." for number in range(10, 50)]
CHINESE = [
    "退款政策：客户可以在三十天内退款。",
    "运费说明：国内运费为十元，国际运费按重量计算。",
    "质保：所有产品保修两年。",
]
GERMAN = ["Kunden erhalten binnen dreißig Tagen Geld zurück.", "Die Versandkosten betragen zehn Euro."]
PRODUCTS = ["invoice 20240131", "invoice 20240117", "invoice 20240118"]


@pytest.mark.parametrize(
    ("query", "texts", "best"),
    [
        ("What does error E1000440 mean?", CODES, 30),
        ("invoice 20240117", PRODUCTS, 1),
        ("客户可以在多少天内退款？", CHINESE, 0),
        ("国际运费怎么算？", CHINESE, 1),
        ("保修多久？", CHINESE, 2),
        ("Wie lange hat ein Kunde Zeit?", GERMAN, 0),
        ("Was kostet der Versand?", GERMAN, 1),
        ("ค่าส่ง", ["ส่งฟรี", "ค่าส่งสิบบาท"], 1),
        ("बिक्री का औसत", ["चुटकुला सुनाओ।", "बिक्री की तालिका।"], 1),
        ("விற்பனை", ["நகைச்சுவை", "மாத விற்பனை அட்டவணை"], 1),
        ("สรุปยอดขาย", ["เล่าเรื่องตลก", "ตารางยอดขาย"], 1),
        ("l'été", ["hiver", "e\u0301te\u0301.csv"], 1),
        ("e\u0301te\u0301", ["hiver", "été.csv"], 1),
        ("detection of anomalies", ["Tell a joke.", "Detect what is anomalous."], 1),
    ],
)
def test_codes_languages_and_parts_of_words_find_their_text(query, texts, best):
    assert LexicalRanker().rank(query, texts)[0][0] == best


def test_a_code_is_found_whole_or_not_at_all():
    assert [at for at, _ in LexicalRanker().rank("E1000440", CODES)] == [30]
    assert LexicalRanker().rank("E1000499", CODES) == []


def test_what_shares_only_a_few_letters_has_nothing_to_do_with_the_query():
    assert LexicalRanker().rank("Tell me the temperature", ["Permit a rating.", "Draw."]) == []


def test_ranking_logs_nothing(caplog):
    with caplog.at_level("DEBUG"):
        LexicalRanker().rank("joke", ("tell a joke", "draw"))

    assert caplog.records == []


def test_vectors_rank_by_cosine_and_a_query_is_embedded_as_one():
    embedder = Letters()
    ranker = EmbeddingRanker(embedder)

    ranked = ranker.rank("aab", ["b", "aa", "aab", "zz"])

    assert isinstance(embedder, Embedder)
    assert isinstance(ranker, Ranker)
    assert [at for at, _ in ranked] == [2, 1, 0]
    assert [round(score, 4) for _, score in ranked] == [1.0, 0.8944, 0.4472]
    assert embedder.asked == [(("b", "aa", "aab", "zz"), False), (("aab",), True)]


def test_what_was_prepared_or_asked_before_is_not_embedded_again():
    embedder = Letters()
    ranker = EmbeddingRanker(embedder)
    ranker.prepare(TEXTS)

    first, second = ranker.rank("joke", TEXTS), ranker.rank("joke", list(TEXTS))

    assert first == second
    assert len(embedder.asked) == 2


def test_a_least_score_may_leave_nothing():
    assert EmbeddingRanker(Letters(), min_score=0.99).rank("q", TEXTS) == []


def test_a_new_process_finds_the_vectors_and_makes_only_what_is_new(tmp_path):
    first, second = Letters(), Letters()
    before = EmbeddingRanker(first, VectorCache(tmp_path)).rank("database", TEXTS)

    after = EmbeddingRanker(second, VectorCache(tmp_path)).rank("database", [*TEXTS, "new"])

    assert [one for one in after if one[0] < 3] == before
    assert second.asked == [(("new",), False), (("database",), True)]


def test_a_changed_text_or_model_is_another_vector(tmp_path):
    cache = VectorCache(tmp_path)
    EmbeddingRanker(Letters(), cache).prepare(["one", "two"])
    changed, renamed = Letters(), Letters()
    renamed.name = "letters 2"

    EmbeddingRanker(changed, cache).prepare(["one", "two!"])
    EmbeddingRanker(renamed, cache).prepare(["one"])

    assert changed.asked == [(("two!",), False)]
    assert renamed.asked == [(("one",), False)]


def test_neither_texts_nor_queries_stand_in_the_cache(tmp_path):
    EmbeddingRanker(Letters(), cache := VectorCache(tmp_path)).rank("a secret question", ["a secret text"])

    (file,) = tmp_path.iterdir()

    assert b"secret" not in file.read_bytes()
    assert len(cache.get("letters 1", ["a secret text", "a secret question"])) == 1


HALF = {
    "empty": lambda file: file.write_bytes(b""),
    "something else": lambda file: file.write_bytes(b"no vectors at all, but long enough to be taken for some" * 40),
    "cut off": lambda file: os.truncate(file, file.stat().st_size - 3),
    "too long": lambda file: os.truncate(file, file.stat().st_size + 4),
    "zeros": lambda file: file.write_bytes(bytes(file.stat().st_size)),
    "many keys": lambda file: file.write_bytes(struct.pack("<8sII", file.read_bytes()[:8], 2**32 - 1, 2**32 - 4)),
}


@pytest.mark.parametrize("spoil", HALF.values(), ids=HALF)
def test_a_broken_cache_is_made_anew(tmp_path, spoil):
    cache = VectorCache(tmp_path)
    EmbeddingRanker(Letters(), cache).prepare(TEXTS)
    (file,) = tmp_path.iterdir()
    spoil(file)

    assert EmbeddingRanker(Letters(), VectorCache(tmp_path)).rank("draw", TEXTS)[0][0] == 2
    assert VectorCache(tmp_path).get("letters 1", TEXTS).keys() == set(TEXTS)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("vectors", [{TEXTS[0]: b"1234"}, dict.fromkeys(TEXTS, b"12345678" * 4)], ids=["one", "all"])
def test_vectors_of_another_length_are_made_anew(tmp_path, vectors):
    cache = VectorCache(tmp_path)
    cache.put("letters 1", vectors)
    first, second = Letters(), Letters()

    assert EmbeddingRanker(first, cache).rank("draw", TEXTS) == EmbeddingRanker(second, cache).rank("draw", TEXTS)
    assert second.asked == [(("draw",), True)]


def test_a_folder_that_cannot_be_written_costs_time_only(tmp_path, caplog):
    (tmp_path / "file").write_text("in the way")

    assert EmbeddingRanker(Letters(), VectorCache(tmp_path / "file")).rank("draw", TEXTS)[0][0] == 2
    assert "embeddings are kept in memory only" in caplog.text


def test_a_full_cache_begins_again(tmp_path):
    cache = VectorCache(tmp_path, max_bytes=120)
    cache.put("m", {"a": b"1234", "b": b"1234"})
    cache.put("m", {"c": b"1234", "d": b"1234"})

    assert cache.get("m", ["a", "b", "c", "d"]) == {"c": b"1234", "d": b"1234"}


def test_many_small_files_become_few(tmp_path):
    cache = VectorCache(tmp_path)
    for number in range(100):
        cache.put("m", {str(number): number.to_bytes(4, "little")})
    cache.put("other", {"0": b"1234"})

    found = cache.get("m", [str(number) for number in range(101)])

    assert found == {str(number): number.to_bytes(4, "little") for number in range(100)}
    assert len(list(tmp_path.iterdir())) <= 17


def test_processes_may_share_a_cache_and_nothing_is_lost(tmp_path):
    program = (
        "import sys; from pathlib import Path; from tw_autogen.model.embedding_cache import VectorCache\n"
        "cache = VectorCache(Path(sys.argv[1]))\n"
        "for at in range(60): cache.put('m', {f'{sys.argv[2]} {at}': b'1234'}); cache.get('m', ['x'])\n"
    )
    started = [subprocess.Popen([sys.executable, "-c", program, tmp_path, str(number)]) for number in range(4)]
    assert [one.wait() for one in started] == [0, 0, 0, 0]

    assert len(VectorCache(tmp_path).get("m", [f"{number} {at}" for number in range(4) for at in range(60)])) == 240
    assert not [path for path in tmp_path.iterdir() if path.suffix != ".vectors"]


def to_a_file(folder, out):
    folder.mkdir()
    EmbeddingRanker(Letters(), VectorCache(folder)).prepare(TEXTS)
    (file,) = folder.iterdir()
    file.rename(out / "kept")
    file.symlink_to(out / "kept")


def to_a_pipe(folder, out):
    folder.mkdir()
    EmbeddingRanker(Letters(), VectorCache(folder)).prepare(TEXTS)
    (file,) = folder.iterdir()
    file.unlink()
    os.mkfifo(file)


IN_THE_WAY = {"the folder": lambda folder, out: folder.symlink_to(out), "a file": to_a_file, "a pipe": to_a_pipe}


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
@pytest.mark.parametrize("prepare", IN_THE_WAY.values(), ids=IN_THE_WAY)
def test_a_cache_follows_no_link_out_of_a_folder_that_nobody_trusts_and_waits_for_no_pipe(tmp_path, prepare):
    here, out = tmp_path / "here", tmp_path / "out"
    here.mkdir()
    out.mkdir()
    prepare(here / "cache", out)
    before = {path.name: (path.stat().st_mode, path.read_bytes()) for path in out.iterdir()}
    embedder = Letters()

    ranked = EmbeddingRanker(embedder, VectorCache(here / "cache", distrusted=here)).rank("draw", TEXTS)

    assert ranked[0][0] == 2
    assert embedder.asked[0] == (tuple(TEXTS), False)  # nothing was read over the link
    assert {path.name: (path.stat().st_mode, path.read_bytes()) for path in out.iterdir()} == before


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_a_link_of_the_users_own_leads_to_the_cache(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "cache").symlink_to(tmp_path / "disk")

    VectorCache(tmp_path / "cache").put("m", {"text": b"1234"})

    assert VectorCache(tmp_path / "disk").get("m", ["text"]) == {"text": b"1234"}


def test_a_relative_cache_of_a_trusted_projects_file_lies_in_the_project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "tw_autogen.yaml").write_text("embedding.cache: cache\n")

    settings = read_settings(project=tmp_path / "project", environ={}, trust=True)

    assert settings.read("embedding", EmbeddingSettings).cache == str(tmp_path / "project" / "cache")


def test_threads_may_share_a_cache(tmp_path):
    cache = VectorCache(tmp_path)
    threads = [
        threading.Thread(target=lambda at=at: cache.put("m", {f"{at} {i}": b"1234" for i in range(50)}))
        for at in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(cache.get("m", [f"{at} {i}" for at in range(8) for i in range(50)])) == 400


def test_the_cache_lies_where_the_system_keeps_caches(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder(os.environ) == tmp_path / "tw-autogen"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder(os.environ) == tmp_path / ".cache" / "tw-autogen"


def test_a_server_is_asked_in_plain_numbers_and_its_order_is_put_right():
    with scripted_server(served((1.0, 0.0), (0.0, 2.0), order=(1, 0))) as server:
        vectors = asked_of(server).embed(["a", "b"])

    assert vectors == [[1.0, 0.0], [0.0, 2.0]]
    assert server.requests == [{"model": "small", "input": ["a", "b"], "encoding_format": "float"}]


def test_many_texts_are_asked_for_some_at_a_time():
    def answer(request):
        return served(*([float(text), 1.0] for text in request["input"]))

    texts = [str(at) for at in range(300)]
    with scripted_server(answer) as server:
        vectors = asked_of(server).embed(texts)

    assert [vector[0] for vector in vectors] == [float(at) for at in range(300)]
    assert [len(request["input"]) for request in server.requests] == [128, 128, 44]


def test_a_server_that_takes_few_texts_at_once_is_asked_for_fewer():
    def answer(request):
        texts = request["input"]
        few = served(*([float(text), 1.0] for text in texts))
        return few if len(texts) <= 32 else refused(422, f"batch size {len(texts)} > maximum allowed batch size 32")

    with scripted_server(answer) as server:
        vectors = asked_of(server).embed([str(at) for at in range(100)])

    assert [vector[0] for vector in vectors] == [float(at) for at in range(100)]
    assert [len(request["input"]) for request in server.requests] == [100, 50, 25, 25, 50, 25, 25]


def test_vectors_without_numbers_of_their_own_are_in_the_order_of_the_texts():
    plain = [{"embedding": [1.0]}, {"embedding": [2.0]}]
    for body in ({"data": plain}, plain, {"data": [{**one, "index": 0} for one in plain]}):
        with scripted_server(Reply(body=body)) as server:
            assert asked_of(server).embed(["a", "b"]) == [[1.0], [2.0]]


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (served((1.0,)), "are not 2 embeddings"),
        (Reply(raw=b"<html>Welcome</html>", kind="text/html"), "are not 2 embeddings"),
        (Reply(body={"data": None}), "are not 2 embeddings"),
        (refused(401, "no such key"), r"Set `embedding\.api_key`"),
        (refused(404, "nothing here"), r"A `embedding\.base_url` usually ends in /v1"),
        (
            refused(400, "input exceeds the maximum context length"),
            r"the embedding server refused the texts \(400\): .* Check that '.*' \(`embedding\.name`\) is a model for",
        ),
        (refused(413, "too large"), r"the embedding server refused the texts \(413\)"),
        (refused(503, "no worker"), r"the server failed \(503\) 2 times"),
        (Reply(body={"error": {"message": "No models loaded"}}), "answered with an error: No models loaded$"),
        (Reply(503, {"error": "Loading model"}, headers={"retry-after": "600"}), r"the server failed \(503\) once"),
    ],
)
def test_a_server_that_gives_no_embeddings_is_an_error_that_says_what_to_do(reply, message):
    with scripted_server(reply) as server, pytest.raises(ModelError, match=message):
        asked_of(server, max_tries=2).embed(["a", "b"])


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1.0, 2.0], [1.0]], "vectors of different lengths"),
        ([[float("nan")], [1.0]], "no vectors of finite numbers"),
        ([[], []], "no vectors of finite numbers"),
        (["AACAPw==", "AACAPw=="], "of something else than numbers"),
        ([{"int8": [1]}], "of something else than numbers"),
    ],
)
def test_vectors_that_are_none_are_refused(vectors, message):
    class Odd(Letters):
        def embed(self, texts, *, query=False):
            return vectors

    with pytest.raises(ModelError, match=f"^letters 1: .*{message}"):
        EmbeddingRanker(Odd()).prepare(["a", "b"])


def test_half_a_surrogate_pair_is_asked_for_as_a_question_mark():
    embedded = []

    class Strict(Letters):
        def embed(self, texts, *, query=False):
            embedded.extend(text.encode("utf-8").decode() for text in texts)
            return super().embed(texts, query=query)

    EmbeddingRanker(Strict()).rank("sales\udcff", ["a\ud800", "b"])

    assert sorted(embedded) == ["a?", "b", "sales?"]


def test_a_query_of_another_length_is_an_error():
    class Odd(Letters):
        def embed(self, texts, *, query=False):
            return [[1.0, 2.0]] if query else [[1.0] for _ in texts]

    with pytest.raises(ModelError, match="a vector of 2 numbers, where those of the texts have 1"):
        EmbeddingRanker(Odd()).rank("a", ["b"])


def test_a_text_of_zeros_is_like_nothing_and_an_empty_one_is_no_error():
    assert EmbeddingRanker(Letters()).rank("a", ["", "123", "a"]) == [(2, 1.0)]


def test_nobody_named_is_the_lexical_one():
    assert isinstance(resolve_ranker(EmbeddingSettings(), ModelSettings()), LexicalRanker)


def test_the_models_server_and_key_are_taken_but_a_key_goes_to_its_own_server_only(tmp_path):
    wanted = EmbeddingSettings(name="small", cache=str(tmp_path))
    with scripted_server(served((1.0, 0.0))) as server, scripted_server(served((1.0, 0.0))) as other:
        chat = ModelSettings(base_url=server.base_url, api_key="sk-chat")
        resolve_ranker(wanted, chat).prepare(["a"])
        resolve_ranker(EmbeddingSettings(name="s", base_url=other.base_url, cache=str(tmp_path)), chat).prepare(["a"])

    assert server.headers[0]["authorization"] == "Bearer sk-chat"
    assert "sk-chat" not in json.dumps(other.headers)


@pytest.mark.parametrize(
    ("wanted", "kind", "message"),
    [
        (EmbeddingSettings(name="a", folder="b"), ConfigError, "both `embedding.name` and `embedding.folder` are set"),
        (EmbeddingSettings(name="a"), NoModelError, "no key for embeddings; set `embedding.api_key`"),
        (EmbeddingSettings(folder="/no/such/folder"), ConfigError, r"embedding\.folder: /no/such/folder is not there"),
        (EmbeddingSettings(name="a", base_url="localhost/v1", api_key="k"), ConfigError, r"^embedding\.base_url: "),
    ],
)
def test_wrong_settings_say_which(wanted, kind, message):
    with pytest.raises(kind, match=message):
        resolve_ranker(wanted, ModelSettings())


@pytest.mark.slow  # importing torch alone may take a minute
@pytest.mark.timeout(900)
def test_a_model_in_a_folder_is_run_here_and_an_exchanged_one_is_another(tmp_path):
    transformers = pytest.importorskip("sentence_transformers", reason="the extra `embed` is not installed")
    words = {word: at for at, word in enumerate(["[UNK]", "pull", "rows", "joke", "tell", "chart"])}
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    static = pytest.importorskip("sentence_transformers.models").StaticEmbedding
    for folder, weights in (("one", 1.0), ("two", 2.0)):
        table = [[weights * (row == column) for column in range(6)] for row in range(6)]
        numbers = pytest.importorskip("numpy").array(table, dtype="float32")
        model = transformers.SentenceTransformer(modules=[static(tokenizer, embedding_weights=numbers)], device="cpu")
        model.save(str(tmp_path / folder))

    settings = EmbeddingSettings(folder=str(tmp_path / "one"), cache=str(tmp_path / "cache"))
    ranker = resolve_ranker(settings, ModelSettings())

    assert [at for at, _ in ranker.rank("joke", ["pull rows", "tell joke", "chart"])] == [1]
    assert FolderEmbedder(tmp_path / "one").name != FolderEmbedder(tmp_path / "two").name


@pytest.mark.slow  # importing torch alone may take a minute
@pytest.mark.timeout(900)
def test_a_folder_without_a_model_says_so(tmp_path):
    pytest.importorskip("sentence_transformers", reason="the extra `embed` is not installed")
    with pytest.raises(ConfigError, match=r"embedding\.folder: no model can be loaded from "):
        FolderEmbedder(tmp_path)
