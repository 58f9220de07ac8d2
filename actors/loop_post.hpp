// The way back from other threads to the loop: what the device or a helper has finished is told by
// a call on the loop's thread. Whoever owns a loop_post may end while calls are on their way; those
// are dropped, because they are about something that is no more.
#pragma once

#include <functional>
#include <memory>
#include <utility>

namespace troupe::actors {

// Queues a call onto the loop's thread, from any thread; never calls at once.
using post_function = std::function<void(std::function<void()>)>;

class loop_post {
 public:
  explicit loop_post(post_function post)
      : post_(std::make_shared<const post_function>(std::move(post))),
        owner_(std::make_shared<bool>(true)) {}
  loop_post(const loop_post&) = delete;
  loop_post& operator=(const loop_post&) = delete;

  // For jobs and threads, which may outlive the owner.
  class sender {
   public:
    void operator()(std::function<void()> call) const {
      (*post_)([call = std::move(call), owner = owner_] {
        if (!owner.expired()) call();
      });
    }

   private:
    friend loop_post;
    std::shared_ptr<const post_function> post_;
    std::weak_ptr<bool> owner_;
  };
  sender to_loop() const {
    sender s;
    s.post_ = post_;
    s.owner_ = owner_;
    return s;
  }
  void close() { owner_.reset(); }  // on the loop's thread: nothing more is called

 private:
  std::shared_ptr<const post_function> post_;
  std::shared_ptr<bool> owner_;
};

}  // namespace troupe::actors
