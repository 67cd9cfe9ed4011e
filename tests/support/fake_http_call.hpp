// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/storage/s3/requests/http_call.hpp>

#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace penstock_test {

/// Answers requests with what was put there last for their method and URL, and keeps them. At other URLs
/// nobody answers: errc::io. `once` and `lose` are for single requests.
class fake_http_call {
 public:
  using answer = penstock::detail::s3::http_answer;
  using request = penstock::detail::s3::http_request;

  void put(const std::string& method_and_url, int status, std::string body,
           std::vector<penstock::detail::s3::name_value> headers = {}) {
    const std::lock_guard lock(mutex_);
    answers_[method_and_url] = {status, std::move(headers), std::move(body)};
  }
  /// Something else happens to the next request there: another answer, or none.
  void once(const std::string& method_and_url, answer other) {
    const std::lock_guard lock(mutex_);
    next_[method_and_url].push_back(std::move(other));
  }
  void lose(const std::string& method_and_url, int times = 1) {
    const std::lock_guard lock(mutex_);
    next_[method_and_url].insert(next_[method_and_url].end(), static_cast<std::size_t>(times), std::nullopt);
  }
  [[nodiscard]] penstock::detail::s3::http_call call() {
    return {this,
            [](void* self, const request& asked) { return static_cast<fake_http_call*>(self)->send(asked); }};
  }
  [[nodiscard]] std::vector<request> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  [[nodiscard]] request last() const { return requests().at(requests().size() - 1); }

 private:
  answer send(const request& asked) {
    const std::lock_guard lock(mutex_);
    requests_.push_back(asked);
    if (auto& other = next_[asked.method + " " + asked.to.text()]; !other.empty()) {
      const std::optional<answer> one = std::move(other.front());
      other.pop_front();
      if (one) return *one;
      throw penstock::error(penstock::errc::io, "no answer within 1000 ms").after_time_out();
    }
    if (const auto found = answers_.find(asked.method + " " + asked.to.text()); found != answers_.end())
      return found->second;
    throw penstock::error(penstock::errc::io, {"nobody answers at ", asked.to.without_secrets()});
  }

  mutable std::mutex mutex_;
  std::map<std::string, answer> answers_;
  std::map<std::string, std::deque<std::optional<answer>>> next_;
  std::vector<request> requests_;
};

}  // namespace penstock_test
