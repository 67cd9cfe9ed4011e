// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<boost/beast/http/parser.hpp>) || !__has_include(<openssl/ssl.h>)
#error "penstock/storage/web/plain_http.hpp needs Boost.Beast and OpenSSL: link penstock::http"
#endif

#include <penstock/base/shared.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/http_options.hpp>
#include <penstock/storage/session_report.hpp>
#include <penstock/storage/web/web_objects.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail {

/// What `http` reads through: one request per read, and no second attempt after a failure.
class plain_http {
 public:
  class session {
   public:
    static constexpr session_traits traits = {.latency = true};

    [[nodiscard]] std::uint64_t size(object_id id) const { return version(id).size; }
    /// The object's size, and a hash of its ETag, or of Last-Modified without one. Asked for once.
    [[nodiscard]] object_version version(object_id id) const { return objects_->version(id); }
    /// See `is_tagged`: not for ETags that a server makes of the time and the size, as nginx and Apache
    /// do.
    [[nodiscard]] bool tagged(object_id id) const { return objects_->tagged(id); }
    void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
      objects_->read(id, offset, into);
    }
    void read_many(std::span<const read_request> requests, read_listener listener) const noexcept {
      objects_->read_many(requests, listener);
    }
    /// Ends all requests in flight, those of `read` included.
    void cancel() const noexcept { objects_->cancel(); }
    /// Ends those of `read_many` with that tag.
    void abandon(std::uint64_t tag) const noexcept { objects_->abandon(tag); }
    /// As `cancel`, and lets reads that begin later end at once with errc::stopped.
    void end_reads() const noexcept { objects_->end_reads(); }

    /// Requests sent, those answered by an error or a redirect included; bytes of objects; answers 429 and
    /// 503.
    /// Of at most as many requests in flight as there may be connections.
    [[nodiscard]] session_report report() const noexcept {
      const auto& counted = objects_->counted();
      return {.counters = {.requests = counted.requests.load(),
                           .bytes = counted.bytes.load(),
                           .slow_downs = counted.slow_downs.load()},
              .counted = true,
              .max_in_flight = objects_->connections()};
    }
    /// Connections opened so far.
    [[nodiscard]] std::uint64_t connections() const noexcept {
      return objects_->counted().connections.load();
    }

   private:
    friend plain_http;
    explicit session(std::unique_ptr<web::objects> made) : objects_(std::move(made)) {}

    std::unique_ptr<web::objects> objects_;
  };

  plain_http(shared<const web::object_list> list, http_options options)
      : list_(std::move(list)), options_(std::move(options)) {}

  [[nodiscard]] std::span<const std::string> names() const noexcept { return list_->names; }
  [[nodiscard]] session connect() const { return session(std::make_unique<web::objects>(list_, options_)); }
  [[nodiscard]] const std::string& pattern() const noexcept { return list_->pattern; }
  [[nodiscard]] const http_options& options() const noexcept { return options_; }

 private:
  shared<const web::object_list> list_;
  http_options options_;
};

static_assert(storage<plain_http> && abandons<plain_http::session>(),
              "plain_http is a storage that reads in the background");

}  // namespace detail
}  // namespace penstock::inline v0_1
