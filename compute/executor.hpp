// A device and the one thread that may use it.
//
// Problem: actors must never compute, yet acks, aborts and overlap must not wait for a whole
// micro-batch. Idea: an actor submits a job (at most one layer of one micro-batch) and gets a
// completion call; protocol jobs (reduce, hash, apply, copy) overtake compute jobs; a cancelled
// executor drops what is queued and a running operation looks at the flag between tiles. Jobs of
// one priority run in the order they were submitted. On the CPU a job's operations run inside it on
// a pool of threads over tiles; on CUDA they are launched into a stream and the completion follows
// an event, which is why a host result may be read only in or after `done`. Not chosen: a future
// per operation (thousands a step, and nobody waits for a single one).
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "compute/buffer.hpp"
#include "compute/ops.hpp"

namespace troupe::compute {

class executor {
 public:
  enum class priority : std::uint8_t { protocol, compute };
  using job = std::function<void(ops&)>;
  // Called once the job's work is complete, on the executor's thread; for a job that cancel()
  // dropped, on the thread that cancels. The pointer is null on success, else what the job threw; a
  // job that was dropped or cut short by cancel() reports `cancelled`.
  using completion = std::function<void(std::exception_ptr)>;
  struct cancelled : std::exception {
    const char* what() const noexcept override { return "the job was cancelled"; }
  };

  virtual ~executor() = default;

  virtual void submit(priority urgency, job work, completion done) = 0;
  // Drops all queued jobs of priority compute and cuts the running one short, if it is one.
  virtual void cancel() = 0;
  // Is a job queued or running? From any thread.
  virtual bool busy() const = 0;
  virtual buffer allocate(std::size_t elements, dtype type) = 0;
  virtual int threads() const = 0;
  // The class of machines and settings within which bits are promised, for example "cpu-chain".
  virtual std::string numerics_class() const = 0;

  // Submits the job and waits for it; rethrows what it threw. For callers that are no actors.
  void run(job work);
};

// Counts what a process computes from: raised whenever a change of the code changes bits.
inline constexpr int numerics_version = 1;

// `threads` at least 1. The CPU device: memory from the heap, operations on a pool of that many
// threads.
std::unique_ptr<executor> make_cpu_executor(int threads);

}  // namespace troupe::compute
