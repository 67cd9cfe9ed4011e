// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/owned.hpp>
#include <penstock/storage/s3/requests/http_call.hpp>
#include <penstock/storage/web/web_client.hpp>

namespace penstock::inline v0_1::detail::s3 {

/// An answer of the client as those who read credentials and errors take it.
[[nodiscard]] inline http_answer answer_of(const web::answer& reply) {
  http_answer made;
  made.status = static_cast<int>(reply.status);
  for (const auto& one : reply.fields)
    made.headers.push_back({std::string(one.name_string()), std::string(one.value())});
  made.body = reply.body;
  return made;
}

/// Sends the requests for credentials: each with a client of its own, since they are rare and may be for
/// different hosts. Services without encryption are near, and are never asked through a proxy.
///
/// Threads: any number may send, and one may cancel; requests that were sent must have ended before it is
/// destroyed.
class web_http_call : unmovable {
 public:
  explicit web_http_call(http_options options) : options_(std::move(options)) {}

  [[nodiscard]] http_call call() noexcept {
    return {this, [](void* self, const http_request& request) {
              return static_cast<web_http_call*>(self)->send(request);
            }};
  }
  /// Ends the requests in progress with errc::stopped.
  void cancel() noexcept {
    const std::scoped_lock lock(mutex_);
    for (web::client* const one : open_) one->refuse();
  }
  /// Does so, and sends none any more.
  void refuse() noexcept {
    {
      const std::scoped_lock lock(mutex_);
      refuses_ = true;
    }
    cancel();
  }

 private:
  [[nodiscard]] static web::verb verb_of(const std::string& method) {
    const auto found = boost::beast::http::string_to_verb({method.data(), method.size()});
    if (found == web::verb::unknown) throw error(errc::argument, {"HTTP has no method '", method, "'"});
    return found;
  }
  /// The client is known to `cancel` for as long as it lives.
  struct listed : unmovable {
    listed(web_http_call& owner, const http_options& options) : all(owner), client(options) {
      const std::scoped_lock lock(all.mutex_);
      if (all.refuses_) throw error(errc::stopped, "the request for credentials was cancelled");
      all.open_.push_back(&client);
    }
    ~listed() {
      const std::scoped_lock lock(all.mutex_);
      std::erase(all.open_, &client);
    }
    web_http_call& all;
    web::client client;
  };

  [[nodiscard]] http_answer send(const http_request& request) {
    const auto end = std::chrono::steady_clock::now() + request.deadline;
    http_options options = options_;
    options.connections = 1;
    options.proxies = options.proxies && request.to.scheme == "https";
    const auto maximum = std::max(request.deadline, std::chrono::milliseconds(1));
    for (auto* const time : {&options.connect_time, &options.first_byte_time, &options.progress_time})
      *time = std::min(*time, maximum);
    web::call what;
    what.method = verb_of(request.method);
    what.where = request.to;
    for (const name_value& one : request.headers) what.headers.emplace_back(one.name, one.value);
    what.body = request.body;
    what.max_body = request.max_body_size;
    what.follow_redirects = false;
    awaited_end ended;
    what.self = &ended;
    what.done = awaited_end::tell<web::call>;
    listed mine(*this, options);
    web::call* const only = &what;
    mine.client.submit({&only, 1});
    const bool in_time = ended.wait_until(end);
    if (!in_time) mine.client.cancel();
    try {
      ended.get();
    } catch (...) {
      if (in_time) throw;
      throw what.failure({"no answer within ", request.deadline.count(), " ms"}).after_time_out();
    }
    if (what.reply.cut) throw what.failure({"the answer has more than ", request.max_body_size, " bytes"});
    return answer_of(what.reply);
  }

  http_options options_;
  std::mutex mutex_;
  std::vector<web::client*> open_;
  bool refuses_ = false;
};

}  // namespace penstock::inline v0_1::detail::s3
