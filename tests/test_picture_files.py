"""Pictures of few bytes that stand for very many pixels are not decoded."""

import base64
import io

import pytest

from tw_autogen.picture_files import open_picture, safe_image_url

Image = pytest.importorskip("PIL.Image")


def picture(size, kind):
    made = io.BytesIO()
    Image.new("P", size).save(made, kind)
    return made.getvalue()


def test_a_picture_of_very_many_pixels_is_not_decoded():
    with open_picture(picture((40, 30), "PNG"), ("PNG",)) as found:
        assert found.size == (40, 30)
    with (
        pytest.raises(ValueError, match="9000 x 9000 pixels is not decoded"),
        open_picture(picture((9000, 9000), "PNG"), ("PNG",)),
    ):
        pass


@pytest.mark.parametrize(("size", "begin"), [((40, 30), "data:image/png;base64,"), ((9000, 9000), "")])
def test_a_gif_is_shown_as_png_unless_it_has_very_many_pixels(size, begin):
    url = "data:image/gif;base64," + base64.b64encode(picture(size, "GIF")).decode()

    assert safe_image_url(url)[:22] == begin
