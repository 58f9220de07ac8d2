// The bulk lane over UCX: one worker a generation, endpoints without error handling, so that shared
// memory and RDMA can be used; large payloads go by rendezvous into the memory that place() gave.
//
// UCX cannot end a transfer with a dead or stopped peer: the request never completes, and neither
// cancelling it nor closing the endpoint by force helps. What does is destroying the worker, in a
// few milliseconds, whatever is in flight. So that is how this lane ends, and why a generation has
// a worker of its own; messages of an old generation have no place where they could arrive.
//
// The lane is two objects: what its user owns, and what the transport progresses. A handler may
// destroy the lane that is just calling it; the second object then lives until the call returns.
#pragma once

#include <deque>
#include <list>
#include <map>
#include <memory>

#include "comm/ucx_context.hpp"

namespace troupe::comm {

class ucx_bulk_traffic {
 public:
  // A peer is reached through the first of the contexts that can.
  static result<std::shared_ptr<ucx_bulk_traffic>> open(
      const std::vector<std::shared_ptr<ucx_context>>& contexts, generation number,
      bulk_handler& handler, std::shared_ptr<traffic> count);
  ~ucx_bulk_traffic();
  ucx_bulk_traffic(const ucx_bulk_traffic&) = delete;
  ucx_bulk_traffic& operator=(const ucx_bulk_traffic&) = delete;

  // For the transport. Called with a shared pointer held, since a handler may end the lane.
  bool progress();
  // Lets UCX work without calling handlers; true if it did or if handlers are to be called.
  bool poll();
  bool ended() const { return workers_.empty(); }
  std::vector<ucx_worker*> workers() const;

  // For the lane.
  const bytes& local_address() const { return address_; }
  status connect(member_id to, bytes_view address);
  void send(member_id to, bytes_view header, bytes_view payload, std::uint64_t token);
  void end();

 private:
  // One way in and out.
  struct door {
    ucx_bulk_traffic* owner = nullptr;
    std::unique_ptr<ucx_worker> worker;
  };
  struct incoming {
    bytes header;
    bytes copy;            // of a payload that UCX does not keep for us
    void* kept = nullptr;  // a payload that UCX keeps, or the handle of a rendezvous
    std::size_t size = 0;
    bool rendezvous = false;
    std::span<std::byte> into;
    door* from = nullptr;
    std::list<incoming>::iterator place;
  };
  struct outgoing {
    bytes header;
    std::uint64_t token = 0;
    ucx_bulk_traffic* owner = nullptr;
    std::list<outgoing>::iterator place;
  };

  ucx_bulk_traffic(generation number, bulk_handler& handler, std::shared_ptr<traffic> count)
      : number_(number), handler_(handler), count_(std::move(count)) {}
  bool has_news() const { return !announced_.empty() || !arrived_.empty() || !sent_.empty(); }
  void deliver();
  void deliver(incoming& message);
  void release(incoming& message);
  static ucs_status_t announce(void* through, const void* header, std::size_t header_size,
                               void* data, std::size_t size, const ucp_am_recv_param_t* how);
  static void received(void* request, ucs_status_t status, std::size_t size, void* message);
  static void was_sent(void* request, ucs_status_t status, void* message);

  generation number_;
  bulk_handler& handler_;
  std::shared_ptr<traffic> count_;
  std::vector<std::unique_ptr<door>> workers_;
  bytes address_;
  std::map<member_id, ucp_ep_h> peers_;
  // As many as the peers have in flight with us; collectives bound that.
  std::list<incoming> receiving_;
  std::list<outgoing> sending_;
  std::deque<incoming*> announced_, arrived_;
  std::deque<std::uint64_t> sent_;
};

class ucx_bulk_lane final : public bulk_lane {
 public:
  explicit ucx_bulk_lane(std::shared_ptr<ucx_bulk_traffic> traffic)
      : traffic_(std::move(traffic)) {}
  ~ucx_bulk_lane() override { traffic_->end(); }
  const bytes& local_address() const override { return traffic_->local_address(); }
  status connect(member_id to, bytes_view address) override {
    return traffic_->connect(to, address);
  }
  void send(member_id to, bytes_view header, bytes_view payload, std::uint64_t token) override {
    traffic_->send(to, header, payload, token);
  }

 private:
  std::shared_ptr<ucx_bulk_traffic> traffic_;
};

}  // namespace troupe::comm
