"""The table of rules: what a cell is refused for, with what to do instead, and the words that the checks look for.

Names of functions are patterns, as `Policy.blocked_functions` explains them. `default` refuses the rows of `RULES`;
`strict` also those of `STRICT_RULES`, which go by kinds of names (`read…`, `to_…`, `save…`) and by library.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase, translate


@dataclass(frozen=True)
class Finding:
    """One thing in a cell that breaks a policy.

    Args:
        line: In the code as written, counted from 1.
        kind: `syntax`, `module`, `function`, `attribute`, `file`, `plugin`, `magic`, `shell` or `install`.
        message: What is wrong.
        remedy: What to do instead; a sentence or two.
    """

    line: int
    kind: str
    message: str
    remedy: str

    def __str__(self) -> str:
        """Return `line 1 (module): import of 'os' is not allowed; allowed: math`."""
        return f"line {self.line} ({self.kind}): {self.message}"

    def at(self, line: int) -> Finding:
        """Return the same finding for another line."""
        return replace(self, line=line)


@dataclass(frozen=True)
class Rule:
    """One row of the table: things that are refused for one reason.

    Args:
        what: The reason, as it stands in a list of what code may not do.
        remedy: What a model should do instead.
        modules: Names of modules.
        functions: Patterns of functions, parts of modules and methods.
    """

    what: str
    remedy: str
    modules: frozenset[str] = field(default_factory=frozenset)
    functions: frozenset[str] = field(default_factory=frozenset)

    def reason(self, *, packages: bool) -> str:
        """Return `what`, without the installing of packages where `packages` may be asked for."""
        return self.what.replace(" or install packages", "").replace(", `%pip`", "") if packages else self.what


OTHER_REMEDY = "Solve the task without it."
_EXIT_REMEDY = "Leave it out: a cell ends after its last line, and before that with `sys.exit(0)`."


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PROCESSES = Rule(
    what="start, control or end processes (`subprocess`, `multiprocessing`, `os.system`, `exit`)",
    remedy="Do the work in this cell with Python and the libraries that are installed; don't start or end a process.",
    modules=_words(
        """subprocess _subprocess _posixsubprocess multiprocessing _multiprocessing pty tty pexpect ptyprocess sh
        plumbum fabric invoke signal _signal atexit billiard loky winreg _winapi msvcrt posix nt"""
    ),
    functions=_words(
        """os.system os.popen os.exec* os.spawn* os.posix_spawn* os.fork* os.kill* os.abort os._exit os.startfile
        os.nice os.setuid os.setgid os.chroot os.wait* os.pidfd_open
        asyncio.create_subprocess_* asyncio.subprocess concurrent.futures.ProcessPoolExecutor
        concurrent.futures.process sys._exit exit quit
        .popen .Popen .getstatusoutput .check_output .check_call .execv .execve .execvp .spawnv .spawnl .posix_spawn
        .fork .system
        joblib.externals
        numpy.f2py numpy.testing.measure numpy.testing.rundocs"""
    ),
)

NETWORK = Rule(
    what="use the network (`socket`, `requests`, `urllib.request`, …)",
    remedy="Nothing may be fetched or sent; work with the files in the current folder, the variables and the plugins.",
    modules=_words(
        """socket _socket socketserver ssl _ssl select selectors requests httpx httpcore aiohttp urllib3 http ftplib
        smtplib smtpd poplib imaplib telnetlib nntplib xmlrpc wsgiref websocket websockets paramiko zmq pycurl
        httplib2 mechanize scrapy selenium playwright webbrowser antigravity asyncore asynchat twisted tornado flask
        fastapi uvicorn docker grpc cgi"""
    ),
    functions=_words(
        """asyncio.open_connection asyncio.open_unix_connection asyncio.start_server asyncio.start_unix_server
        urllib.request urllib.robotparser .urlopen .urlretrieve numpy.DataSource numpy.lib.npyio.DataSource
        logging.handlers.SocketHandler logging.handlers.DatagramHandler logging.handlers.HTTPHandler
        logging.handlers.SMTPHandler logging.handlers.SysLogHandler"""
    ),
)

ENVIRONMENT = Rule(
    what="read or change the environment, accounts or stored passwords (`os.environ`, `os.getenv`, …)",
    remedy="There is nothing in the environment that a task needs; take values from the task, files or variables.",
    modules=_words("""dotenv decouple environs keyring getpass pwd grp spwd crypt netrc"""),
    functions=_words(
        """os.path.expandvars os.environ os.environb os.getenv os.getenvb os.putenv os.unsetenv os.getlogin os.getpwnam
        os.umask os.chmod os.chown os.lchown os.lchmod os.mknod os.mkfifo os.setxattr
        .getenv"""
    ),
)

DELETION = Rule(
    what="delete files or folders",
    remedy="Leave files where they are; write results under a new name.",
    modules=_words("send2trash"),
    functions=_words(
        """os.remove os.unlink os.rmdir os.removedirs os.truncate
        shutil.rmtree
        .unlink .rmdir .rmtree .removedirs
        pathlib.Path.unlink pathlib.Path.rmdir pathlib.PosixPath.unlink pathlib.PosixPath.rmdir"""
    ),
)

DYNAMIC = Rule(
    what="run code from text or reach into Python's internals (`eval`, `exec`, `importlib`, `__globals__`)",
    remedy="Write the code itself in plain Python, and import modules with an `import` statement.",
    modules=_words(
        """builtins __builtin__ __main__ code codeop cgitb pydoc trace site runpy imp zipimport marshal bdb pdb
        ipdb pudb doctest ctypes _ctypes cffi _cffi_backend mmap _xxsubinterpreters _interpreters interpreters dis"""
    ),
    functions=_words(
        """eval exec execfile compile __import__
        importlib.import_module importlib.reload importlib.__import__
        sys.modules sys._getframe sys._current_frames sys.settrace sys.setprofile sys.meta_path sys.path_hooks
        sys.addaudithook
        types.FunctionType types.LambdaType types.CodeType types.ModuleType
        cProfile.run cProfile.runctx profile.run profile.runctx inspect.currentframe inspect.stack inspect.trace
        gc.get_objects gc.get_referrers gc.get_referents numpy.ctypeslib
        yaml.unsafe_load yaml.unsafe_load_all yaml.UnsafeLoader
        torch.utils.cpp_extension sqlite3.enable_load_extension .enable_load_extension pandas.core.computation
        enum.bltns .mro"""
    ),
)

WAITING = Rule(
    what="ask or wait for somebody at the keyboard (`input`, `breakpoint`)",
    remedy="Nobody can type here; take the value from the task, or ask for it in words instead of code.",
    functions=_words("input raw_input breakpoint license credits copyright"),
)

WORDS_FOR_DATA = frozenset({"input", "license", "credits", "copyright"})
"""Functions that wait for somebody, whose names data has as well."""

KERNEL = Rule(
    what="reach into the kernel or install packages (`get_ipython`, `!command`, `%pip`)",
    remedy="Write plain Python; the kernel itself can't be changed from a cell.",
    modules=_words(
        """ipykernel jupyter_client jupyter_core nbclient nbconvert tw_autogen taskweaver pip ensurepip venv"""
    ),
    functions=_words(
        """get_ipython IPython.get_ipython
        .run_line_magic .run_cell_magic .run_cell .getoutput .system_raw .system_piped"""
    ),
)

RULES = (PROCESSES, NETWORK, ENVIRONMENT, DELETION, DYNAMIC, WAITING, KERNEL)
"""What the default policy refuses."""

FILES = Rule(
    what="read or write files (`open`, `read_csv`, `to_csv`, `savefig`, …)",
    remedy="Work with the variables that exist and with what plugins give; show the result as the last expression.",
    functions=_words(
        """open
        .read* .write* .save* .dump* .load* .open* .fetch* .download* .upload* .export* .to_* .print_* .import_*
        .*file .file_* .*_file_* .*files .*filename .from_file* .*memmap .*pickle* .*sql* .*clipboard .*hdf*
        .*datasource .*data_home .*_cache_dir .get_*dir .get_data_path .webdoc .webuse .get_rdataset
        .get_dataset_names .get_sample_data .genfromtxt .fromregex .imread .imsave .check_memory .math_to_image
        .mkdir .makedirs .touch .symlink_to .hardlink_to .listdir .scandir .iterdir .glob .rglob .walk .copytree
        .joinpath .connect .mkstemp .mkdtemp .unpack_archive .make_archive .DataSource .ZipFile .TarFile .FileIO
        .ExcelFile .HDFStore .*Writer .*Reader .PdfPages .FontProperties .TfidfFile .show_versions
        .from_custom_template .formatwarning .showwarning .warn_explicit .reset_tzpath .switch_backend
        .set_*backend .main .x13_* .x12_* .memory .rc_params* .clear_cache
        pandas.io numpy.lib numpy.info numpy.show_config numpy.show_runtime scipy.io scipy.datasets scipy.misc
        matplotlib.image matplotlib.cbook matplotlib.font_manager matplotlib.texmanager matplotlib.animation
        matplotlib.backends matplotlib.backend_bases matplotlib.testing matplotlib.sphinxext matplotlib.use
        matplotlib.mathtext matplotlib.dviread
        statsmodels.iolib statsmodels.datasets.utils statsmodels.tools.web statsmodels.tools.print_version
        sklearn.datasets.get_data_home io.open"""
    ),
)

GUESSING = Rule(
    what="do what only shows when it runs (`getattr`, `vars`, `operator.attrgetter`, text that is evaluated)",
    remedy="Write the attribute, the call or the expression out in plain Python.",
    functions=_words(
        """getattr setattr delattr vars globals locals help memoryview
        operator.attrgetter operator.methodcaller string.Formatter typing.get_type_hints typing.ForwardRef
        dataclasses.make_dataclass enum.bltns
        pandas.eval pandas.core pandas.compat pandas.util pandas.tests pandas.test
        numpy.testing numpy.core numpy.compat numpy.test
        scipy.LowLevelCallable scipy.test sklearn.externals sklearn.tests sklearn.show_versions
        statsmodels.compat statsmodels.sandbox statsmodels.test
        .mro .ctypes .ctypeslib .attrgetter .methodcaller .get_type_hints .make_dataclass .vformat .get_field
        .set_trace .run_path .run_module .runctx .runeval .runcall .runcode .runsource .runstring .rundocs .sympify
        .lambdify .parse_expr .exec_module .find_spec .bltns .design_info .dmatrix .dmatrices .ForwardRef .Formatter"""
    ),
)

STRICT_RULES = (FILES, GUESSING)
"""What the strict policy refuses beside that."""

STRICT_FUNCTIONS = FILES.functions | GUESSING.functions

HARMLESS = _words(
    """.loads .dumps .loading* .load_iris .load_wine .load_digits .load_breast_cancer .load_diabetes .load_linnerud
    .load_pandas .load_sample_image* .ready .readonly .writeable .opening* .openness .export_text
    .to_numpy .to_dict .to_list .to_frame .to_series .to_records .to_array .to_coo .to_dense .to_sparse .to_cuda
    .to_datetime .to_timedelta .to_numeric .to_period .to_timestamp .to_pydatetime .to_pytimedelta .to_flat_index
    .to_datetime64 .to_timedelta64 .to_julian_date .to_offset .to_rgb .to_rgba .to_rgba_array .to_hex .to_xarray
    .to_tuples .to_tuple .to_tree .to_mlab_linkage .to_zpk .to_tf .to_ss .to_discrete .to_interval .to_arrays
    .to_eng_string .to_integral* .to_pylist .to_pandas .to_bytes .to_polynomial .to_device .to_rows .to_iter
    .to_latex_string .profile
    numpy.lib.stride_tricks numpy.lib.scimath numpy.lib.recfunctions numpy.lib.mixins numpy.lib.NumpyVersion
    numpy.lib.array_utils numpy.lib.Arrayterator numpy.lib.arraysetops numpy.lib.function_base numpy.lib.polynomial
    numpy.testing.assert_* numpy.testing.suppress_warnings numpy.testing.clear_and_catch_warnings
    pandas.core.nanops pandas.util.hash_* pandas.util.version .set_backend .set_global_backend
    pandas.io.formats.style.Styler pandas.core.groupby pandas.core.window pandas.core.indexers pandas.core.dtypes
    pandas.core.arrays pandas.core.resample pandas.core.indexes pandas.core.algorithms pandas.core.reshape
    scipy.datasets.ascent scipy.datasets.face scipy.datasets.electrocardiogram
    statsmodels.datasets.*.load statsmodels.api.datasets.*.load statsmodels.sandbox.regression"""
)
"""What a pattern of `STRICT_RULES` would refuse by its name alone; a name that is refused in full stays refused."""

TEXT_WRITERS = _words("to_csv to_json to_string to_html to_latex to_markdown to_xml to_typst")
"""Methods that return a text where they get no target."""

COLUMN_WORDS = _words("open load save dump connect glob walk touch system fork mro file profile memory sql")
"""Methods whose names are also those of columns: refused when called, not when they are looked up."""

OPTIONS = _words(
    """*.*file *.*filename *.*filenames *.*fname *.*filepath *.*path *.path_or_* *.*_dir *.directory *.*folder
    *.*data_home *.memory *__memory *.url *.*_url *.*backend *.usetex *.*preamble *.executable *.*command
    *.storage_options *Vectorizer.input .input set_params.*input set_params.memory"""
)
"""Options, as `function.option`, that name files, addresses or programs; an attribute that is set has no function."""

HARMLESS_OPTIONS = {"input": "content", "backend": "matplotlib"}
"""The one text that such an option may be, beside what is no text."""

SETTINGS = (
    r"(?!animation|backend|datapath|toolbar|webagg|interactive|text\.(usetex|latex)|pgf|ps\.|savefig\.dir|keymap|plotting)"
    r"(?!.*(backend|path|preamble|writer|reader))[\w. ]+$"
)
"""Names of the settings of matplotlib and pandas that may be set: none that name files, programs or modules."""

RUN_TEXT = {"from_formula": "formula", "MICE": "model_formula", "gettz": "name"}
RUN_TEXT |= {"use": "style", "context": "style"}
"""Functions whose first argument is text that they run, or load by its name, with the argument's keyword."""

FORMULA_MODULES = _words("statsmodels.formula")
"""Modules of functions whose first argument is a formula, which is run."""

METHODS_BY_NAME = _words("apply agg aggregate transform pipe map applymap NamedAgg")
"""Methods that take another by its name."""

PURE_MODULES = _words(
    """math cmath statistics scipy.stats scipy.special scipy.optimize scipy.signal scipy.linalg scipy.spatial.distance
    scipy.interpolate scipy.integrate numpy.linalg numpy.random numpy.fft sklearn.metrics numpy.polynomial"""
)
"""Modules without functions that read, write or run anything: `getattr` may look up a computed name in these."""

STRICT_MODULES = _words(
    """math cmath statistics random datetime time calendar zoneinfo decimal fractions numbers re string textwrap
    unicodedata difflib itertools functools operator collections heapq bisect copy json typing dataclasses enum abc
    contextlib hashlib base64 warnings pprint io.StringIO io.BytesIO
    numpy pandas scipy sklearn statsmodels matplotlib seaborn mpl_toolkits dateutil
    array_api_strict array_api_extra"""
)
"""The modules that the strict policy lets code import."""

PLAIN_DUNDERS = _words(
    """__name__ __doc__ __version__ __init__ __post_init__ __new__ __repr__ __str__ __len__ __iter__ __next__
    __contains__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __hash__ __bool__ __int__ __float__ __index__
    __add__ __radd__ __iadd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __floordiv__ __mod__
    __pow__ __matmul__ __neg__ __pos__ __abs__ __and__ __or__ __xor__ __invert__ __getitem__ __setitem__ __delitem__
    __call__ __enter__ __exit__ __format__ __round__ __slots__ __all__ __main__ __future__ __array__ __copy__
    __deepcopy__ __array_namespace_info__ __array_ufunc__ __array_function__ __array_priority__
    __array_finalize__ __array_wrap__"""
)
"""Dunder names that lead nowhere; a policy without `dynamic` allows no others."""

MODULES_INSIDE = (
    frozenset(sys.stdlib_module_names)
    | _words("bltns builtin_mod np pd plt requests psutil urllib3 joblib cloudpickle numexpr sympy patsy pooch")
) - _words(
    """abc array ast bisect calendar cmath code cmd collections contextlib copy csv dataclasses datetime decimal
    difflib email enum fractions functools graphlib hashlib heapq html http imp io itertools json keyword
    locale math mailbox numbers operator pprint profile queue random re resource sched secrets select signal site
    statistics string stat struct textwrap this time timeit token trace turtle types typing unicodedata
    uuid warnings xml zlib dis nt wave chunk crypt pipes pwd grp"""
)
"""Names of modules that are no ordinary words: a policy without `dynamic` takes them for modules anywhere."""

# os without processes, environment and deletion; the same for other modules that are needed in part, though blocked
PARTS = _words(
    """os.path os.listdir os.scandir os.walk os.fwalk os.getcwd os.getcwdb os.chdir os.makedirs os.mkdir os.stat
    os.lstat os.access os.rename os.renames os.replace os.readlink os.utime os.sep os.altsep os.linesep
    os.extsep os.pathsep os.curdir os.pardir os.devnull os.name os.PathLike os.DirEntry os.fspath os.fsencode
    os.fsdecode os.error os.cpu_count os.process_cpu_count os.sched_getaffinity os.getpid os.getppid os.getuid
    os.uname os.urandom os.times os.get_terminal_size os.terminal_size os.stat_result os.F_OK os.R_OK os.W_OK
    os.X_OK os.SEEK_SET os.SEEK_CUR os.SEEK_END os.fsync os.close os.fdopen os.statvfs os.strerror os.__name__
    os.__doc__
    sys.version sys.version_info sys.hexversion sys.implementation sys.platform sys.byteorder sys.maxsize
    sys.maxunicode sys.float_info sys.int_info sys.hash_info sys.float_repr_style sys.getsizeof sys.getrefcount
    sys.intern sys.argv sys.path sys.executable sys.prefix sys.base_prefix sys.stdout sys.stderr sys.stdin
    sys.__stdout__ sys.__stderr__ sys.exit sys.exc_info sys.getrecursionlimit sys.setrecursionlimit
    sys.getdefaultencoding sys.getfilesystemencoding sys.set_int_max_str_digits sys.get_int_max_str_digits
    sys.flags sys.warnoptions sys.builtin_module_names sys.stdlib_module_names sys.displayhook sys.is_finalizing
    sys.__name__ sys.api_version sys.copyright
    shutil.copy shutil.copy2 shutil.copyfile shutil.copyfileobj shutil.copymode shutil.copystat shutil.copytree
    shutil.move shutil.disk_usage shutil.make_archive shutil.unpack_archive shutil.get_archive_formats
    shutil.get_unpack_formats shutil.get_terminal_size shutil.ignore_patterns shutil.which shutil.Error
    shutil.SameFileError
    importlib.metadata importlib.util.find_spec importlib.resources importlib.invalidate_caches
    urllib.parse urllib.error pkgutil.iter_modules
    psutil.virtual_memory psutil.cpu_count psutil.cpu_percent psutil.disk_usage psutil.__version__
    IPython.display IPython.core.display IPython.core.display_functions IPython.lib.display IPython.__version__
    IPython.version_info IPython.lib.pretty
    multiprocessing.cpu_count http.HTTPStatus http.HTTPMethod
    resource.getrusage resource.RUSAGE_SELF resource.getpagesize
    gc.collect gc.enable gc.disable gc.isenabled gc.get_count gc.get_stats gc.get_threshold gc.set_threshold
    gc.freeze gc.DEBUG_LEAK gc.garbage"""
)

MAGICS = _words(
    """matplotlib time timeit capture config precision pprint who whos who_ls pinfo pinfo2 pdoc pdef psearch"""
)

SHELL_MAGICS = _words(
    """sx sc system bash sh script cmd ruby perl ls ll lf lk lx ldir cat cp mv rm rmdir mkdir man more less"""
)
"""Magics and IPython's aliases that run a shell command."""

ESCAPES = _words(
    """__builtins__ __import__ __loader__ __spec__ __bases__ __base__ __mro__ __subclasses__ __globals__
    __builtin__ __code__ __closure__ __getattribute__ __self__ __reduce__ __reduce_ex__ __objclass__
    __thisclass__ __self_class__ tb_frame tb_next f_globals f_locals f_builtins f_back f_code gi_frame gi_code
    gi_yieldfrom cr_frame cr_code cr_origin ag_frame ag_code func_globals func_code co_code co_consts
    __array_interface__ __array_struct__ __cuda_array_interface__"""
)
"""Attributes that lead out of an object into the interpreter, whatever the object is."""

PICKLING_HOOKS = _words("__reduce__ __reduce_ex__")
"""Escapes that a class may define for itself, though not read: what they return runs in the kernel, and is checked."""

DISPLAY_HOOKS = _words("_repr_html_ _repr_javascript_ _repr_svg_ _repr_mimebundle_ _ipython_display_")
"""Methods whose text a viewer runs or loads from elsewhere."""

LIBRARY_VARIABLES = _words(
    """TF_* KERAS_* XLA_* JAX_* TORCH_* PYTORCH_* CUDA_* NVIDIA_* OMP_* MKL_* OPENBLAS_* BLIS_* VECLIB_* GOTO_* KMP_*
    NUMEXPR_* NUMBA_* LOKY_* JOBLIB_* TOKENIZERS_* TRANSFORMERS_* HF_HUB_* HF_DATASETS_* DATASETS_* ARROW_* POLARS_*
    DASK_* RAY_* MODIN_* SCIPY_* SKLEARN_* TQDM_* WANDB_MODE WANDB_SILENT MPLBACKEND QT_QPA_PLATFORM SDL_VIDEODRIVER
    PYTHONHASHSEED PYTHONWARNINGS TZ NO_COLOR COLUMNS LINES"""
)
"""Environment variables that set up a numerical library, and that neither a loader nor another program runs."""

WORDS = _words(
    """signal select selectors code trace resource sh http ssl site pip invoke fabric requests flask docker crypt
    grp pwd
    gc nt tty dis imp cgi zmq environs decouple mmap netrc interpreters psutil tornado scrapy loky"""
)
"""Modules whose names are also ordinary words for variables and for parts of other packages."""

USUAL_NAMES = {
    "np": "numpy",
    "pd": "pandas",
    "plt": "matplotlib.pyplot",
    "mpl": "matplotlib",
    "sns": "seaborn",
    "sp": "scipy",
    "sm": "statsmodels.api",
    "tf": "tensorflow",
    "mp": "multiprocessing",
}
"""Short names that everybody uses; a cell may have them from an earlier cell."""

SHARED_NAMES: Mapping[str, frozenset[str]] = {
    "mp": _words(
        """Process Pool Queue SimpleQueue JoinableQueue Manager Pipe get_context set_start_method set_executable
        connection context dummy forkserver heap managers pool popen_fork popen_spawn_posix popen_forkserver process
        queues reduction resource_sharer resource_tracker shared_memory sharedctypes spawn synchronize util"""
    )
}
"""Short names of `USUAL_NAMES` that are those of other modules too (`mp` is mpmath's), with the attributes that tell
which one an earlier cell has imported."""


def name_matcher(names: Iterable[str]) -> Callable[[str], bool]:
    """Return a function that tells whether one of these patterns matches."""
    found = re.compile("|".join(map(translate, sorted(names))) or r"(?!)")
    return lambda name: found.match(name) is not None


def remedy(name: str, module: str) -> str:
    """Return what to do instead of a refused name, in a module or of its own.

    Args:
        name: The refused name.
        module: The module it stands in; empty: a builtin or a method.
    """
    if name in ("exit", "quit"):
        return _EXIT_REMEDY
    for rule in (*RULES, *STRICT_RULES):
        if any(fnmatchcase(name, known) for known in rule.functions):
            return rule.remedy
    return next((rule.remedy for rule in RULES if module.partition(".")[0] in rule.modules), OTHER_REMEDY)
