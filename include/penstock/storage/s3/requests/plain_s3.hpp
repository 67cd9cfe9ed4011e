// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<boost/beast/http/parser.hpp>) || !__has_include(<pugixml.hpp>)
#error "penstock/storage/s3/requests/plain_s3.hpp needs Boost.Beast and pugixml: link penstock::s3"
#endif

#include <penstock/base/shared.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/s3/requests/object_list.hpp>
#include <penstock/storage/s3/requests/stored_objects.hpp>
#include <penstock/storage/s3_options.hpp>
#include <penstock/storage/session_report.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail {

/// What `s3` reads through: one request per read, and a second one only if an answer asks for it. Failures
/// are not retried.
class plain_s3 {
 public:
  class session {
   public:
    static constexpr session_traits traits = {.latency = true};

    [[nodiscard]] std::uint64_t size(object_id id) const { return version(id).size; }
    /// The object's size, and a hash of its ETag. Asked for once.
    [[nodiscard]] object_version version(object_id id) const { return objects_->version(id); }
    /// See `expect_version`.
    [[nodiscard]] bool expect(object_id id, object_version what) const { return objects_->expect(id, what); }
    /// See `is_tagged`.
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

    /// Requests sent, those answered by an error or a redirect included; bytes of objects; answers that asked
    /// for fewer requests. Of at most as many requests in flight as there may be connections.
    [[nodiscard]] session_report report() const noexcept {
      return {.counters = objects_->counters(), .counted = true, .max_in_flight = objects_->max_in_flight()};
    }
    /// Connections opened so far.
    [[nodiscard]] std::uint64_t connections() const noexcept { return objects_->connections(); }

   private:
    friend plain_s3;
    explicit session(std::unique_ptr<s3::stored_objects> made) : objects_(std::move(made)) {}

    std::unique_ptr<s3::stored_objects> objects_;
  };

  plain_s3(shared<const s3::object_names> list, s3_options options)
      : list_(std::move(list)), options_(std::move(options)) {}

  [[nodiscard]] std::span<const std::string> names() const noexcept { return list_->names; }
  [[nodiscard]] session connect() const {
    return session(std::make_unique<s3::stored_objects>(list_, options_));
  }

 private:
  shared<const s3::object_names> list_;
  s3_options options_;
};

static_assert(storage<plain_s3> && abandons<plain_s3::session>(),
              "plain_s3 is a storage that reads in the background");

}  // namespace detail
}  // namespace penstock::inline v0_1
