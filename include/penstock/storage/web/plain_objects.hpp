// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_report.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace penstock::inline v0_1::detail::web {

/// What `http` and `s3` read through: one request per read, and a second one only if an answer asks for it.
/// Failures are not retried. `Objects` are those of a session, made of a list and options.
template <class Objects, class Options>
class plain_objects {
  using list = typename Objects::list;

 public:
  class session {
   public:
    static constexpr bool views = false;
    static constexpr bool has_latency = true;

    [[nodiscard]] std::uint64_t size(object_id id) const { return version(id).size; }
    /// The object's size, and a hash of its ETag, or, over HTTP, of Last-Modified without one. Asked for
    /// once.
    [[nodiscard]] object_version version(object_id id) const { return objects_->version(id); }
    /// See `expecting_session`.
    [[nodiscard]] bool expect(object_id id, object_version what) const
      requires requires(Objects& them) { them.expect(id, what); }
    {
      return objects_->expect(id, what);
    }
    /// See `tagging_session`: not for ETags that a server makes of the time and the size, as nginx and Apache
    /// do.
    [[nodiscard]] bool tagged(object_id id) const { return objects_->tagged(id); }
    void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
      objects_->read(id, offset, into);
    }
    void read_many(std::span<const read_request> requests, read_listener listener) const noexcept {
      objects_->read_many(requests, listener);
    }
    /// Ends all requests in flight, those of `read` and those for credentials included.
    void cancel() const noexcept { objects_->cancel(); }
    /// Ends those of `read_many` with that tag.
    void abandon(std::uint64_t tag) const noexcept { objects_->abandon(tag); }
    /// As `cancel`, and lets reads that begin later end at once with errc::stopped.
    void end_reads() const noexcept { objects_->end_reads(); }
    void will_need(object_id, std::uint64_t, std::uint64_t) const noexcept {}

    /// Requests sent, those answered by an error or a redirect included; bytes of objects; answers that asked
    /// for fewer requests. Of at most as many requests in flight as there may be connections.
    [[nodiscard]] session_report report() const noexcept {
      return {.counters = objects_->counters(), .counted = true, .max_in_flight = objects_->max_in_flight()};
    }
    /// Connections opened so far.
    [[nodiscard]] std::uint64_t connections() const noexcept { return objects_->connections(); }

   private:
    friend plain_objects;
    explicit session(std::unique_ptr<Objects> made) : objects_(std::move(made)) {}

    std::unique_ptr<Objects> objects_;
  };

  plain_objects(shared<const list> all, Options options)
      : list_(std::move(all)), options_(std::move(options)) {}

  [[nodiscard]] std::span<const std::string> names() const noexcept { return list_->names; }
  [[nodiscard]] session connect() const { return session(std::make_unique<Objects>(list_, options_)); }

 private:
  shared<const list> list_;
  Options options_;
};

}  // namespace penstock::inline v0_1::detail::web
