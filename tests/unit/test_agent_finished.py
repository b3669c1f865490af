"""Words without a call: finished answers, announcements, claims."""

import pytest

from constrained_agent.agent.finished import unfinished


@pytest.mark.parametrize(
    "text",
    [
        "I will now edit area.py.",
        "I'll read the file first.",
        "I’ll start by reading area.py.",
        "Let me look at the tests.",
        "The bug is in area. Let me fix it.",
        "First, I need to read the file.",
        "Now I will apply the patch:",
        "Here is the change:",
        "I am going to run the tests now.",
        "Next, I will update the configuration.",
        "Let's run the tests to see what fails.",
        "I should fix this",
        "I'll run the tests once more.",
        "Let me check if there are other usages.",
        "Let me investigate the failure.",
        "I will take a look at the tests. Please wait.",
        "The function is wrong.\nI will go ahead and correct it.",
        "I want to read the file first.",
        "I'd like to look at the tests first.",
        "I'm about to edit area.py.",
        "My next step is to run the tests.",
        "Now to fix the second bug.",
        "Now fixing the second bug.",
        "Reading area.py...",
        "Fixing `area` now.",
        "I am reading the file now.",
        "Okay, let me double-check the tests.",
        "I'll swap day and month.",
        "I'll adjust the index.",
    ],
)
def test_announced(text):
    assert unfinished(text, changed=False) == "announced"
    assert unfinished(text, changed=True) == "announced"


@pytest.mark.parametrize(
    "text",
    [
        "I fixed the bug in area.py.",
        "I have updated the function to multiply.",
        "I've added the missing import and removed the old one.",
        "The file has been updated.",
        "We have successfully corrected the typo.",
        "Done. I’ve replaced `+` with `*`.",
        "I updated it so it no longer raises.",
        "Fixed the off-by-one error in area.py.",
        "I have added a unit test under tests.",
        "The bug has been resolved.",
        "I have made the necessary changes.",
        "I made the following changes.",
        "The changes have been made.",
        "The patch was applied.",
        "The fix is in place.",
        "The bug is now fixed.",
        "Both bugs are fixed.",
        "Fixed!",
        "Done, I fixed it.",
        "Updated area.py to multiply.",
        "Updated `area.py` to multiply.",
        "area.py has been updated.",
        "All tests pass now.",
        "I swapped day and month.",
        "I went ahead and fixed it.",
        "I wrote the new file.",
        "Added + 1 to the index.",
        "I solved the problem.",
        "File updated.",
        "f.txt was updated.",
        "Successfully updated f.txt.",
        "The change is done: f.txt was edited.",
        "f.txt now contains 1 instead of one.",
    ],
)
def test_claimed(text):
    assert unfinished(text, changed=False) == "claimed"
    assert unfinished(text, changed=True) is None


@pytest.mark.parametrize(
    "text",
    [
        "The end.",
        "The function area multiplies width and height.",
        "Nothing was changed: the tests pass already.",
        "No files were modified.",
        "I did not change anything.",
        "The config was not updated, since it is right.",
        "There is no such file in this repository.",
        "Paris.",
        "The loop index i should start at 1, not at 0.",
        "This is going to make the import slower.",
        "I should add that Windows paths are untested.",
        "To fix it, we can use a lock.",
        "In that case I would add a guard.",
        "I need to see the traceback before I can say more.",
        "We should test this on Windows too.",
        "The method looks like this:\n    def parse(self) -> Node:",
        "`np.float` has been removed in NumPy 1.24.",
        "The file has been modified since the last commit.",
        "If I changed `max_size` to 0, it would fail.",
        "I have written the answer below.",
        "All done: 2 files changed.",
        "The default was changed in version 3.2.",
        "The bug is fixed in version 3.2.",
        "That bug was fixed in 2019.",
        "Removed in Python 3.",
        "np.float has been removed in NumPy 1.24.",
        "Once the bug is fixed, the tests pass.",
        "Added lines are green, removed lines are red.",
        "The two lines that need to be changed are 35 and 41.",
        "I must admit that I do not know.",
        "The problem is solved by a lock around the counter.",
        "f.txt was changed by the last release.",
        "I'd like to see the traceback first.",
        "I will not change the tests.",
        "I'll leave the tests as they are.",
        "Should I change the tests as well?",
        "I recommend that you run the tests.",
        "Let me know if I should change anything else.",
        "If you want, I can run the tests.",
        "Once you agree, I will apply the change.",
        'The docs say "I will now edit the file."',
        "The log says:\n```\nI have updated the file.\n```\nThat is all.",
        "You should run `pip install .` before the tests.",
        "It returns the sum.\n\n- width\n- height",
        "",
    ],
)
def test_finished(text):
    assert unfinished(text, changed=False) is None
