"""The run of the checks on each subject: on which cases, and the verdicts that follow."""
