// The notices that mean "leave politely", and how a worker takes them: a flag that the training
// loop looks at between steps. A second INT to the worker itself leaves at once.
#pragma once

#include <signal.h>

namespace troupe::actors {

// TERM, INT, USR1, USR2, and HUP unless this process was started with HUP ignored (nohup).
sigset_t stop_signal_set();

// From now on the notices only set the flag. PIPE is ignored; so is the file-size limit's signal,
// which then shows as a failed write. `launched`: the parent process is the run's launcher.
void take_stop_signals(bool launched);

// The notice that came first, 0 if none did.
int stop_signal();
// The launcher told, or it died: the whole run is to stop, and not this member alone to leave.
bool stop_means_the_run();

}  // namespace troupe::actors
