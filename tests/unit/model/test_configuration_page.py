"""The page of settings says what the table says."""

from tests.support.configuration_page import PAGE, page


def test_the_page_of_settings_is_current():
    assert PAGE.read_text() == page(), "run python -m tests.support.configuration_page"
