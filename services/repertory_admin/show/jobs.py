"""Shows the jobs of a server."""

import time

from repertory.stats import Jobs
from repertory.text import ago
from repertory_admin import terminal
from repertory_admin.show.statistics import doing


def show(jobs: Jobs) -> None:
    """Show how many jobs wait, what the workers do, and the failed jobs."""
    waiting = {f"{name} waiting": f"{count:,}" for name, count in jobs.waiting.items()}
    taken = "unknown" if jobs.taken is None else f"{jobs.taken:,}"
    terminal.show_facts(waiting | {"with workers": taken, "failed": f"{len(jobs.failed):,}"})
    if jobs.running:
        terminal.say()
        terminal.show_table(
            ("Worker", "Does"), [(one.worker, doing(one.busy)) for one in jobs.running]
        )
    if jobs.failed:
        terminal.say()
        terminal.show_table(
            ("Failed", "Items", "Attempts", "When", "Error"),
            [
                (
                    job.id,
                    ", ".join(job.items[:3]) + (", …" if len(job.items) > 3 else ""),
                    f"{job.attempts:,}",
                    ago(time.time() - job.at),
                    job.error,
                )
                for job in jobs.failed
            ],
            right=("Attempts",),
            styles={"Error": lambda _: "red"},
        )
        terminal.note("`repertory queue retry` tries them again.")
