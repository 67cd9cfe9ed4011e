// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/s3/credentials.hpp>
#include <penstock/storage/s3/endpoint.hpp>
#include <penstock/storage/s3/error_result.hpp>
#include <penstock/storage/s3/requests/web_http_call.hpp>

namespace penstock::inline v0_1::detail::s3 {

/// A request to a store, and where its answer goes. The caller fills the first part and keeps it until
/// `ended`.
struct store_call : web::call {
  /// Where it goes; no key: to the bucket. They outlive the call, as does `name`.
  std::string_view bucket, key;
  std::vector<name_value> query;  // not encoded
  std::vector<name_value> more;   // headers that are signed, in lower case
  /// What is to happen, for errors.
  std::string_view doing = "read an object";
  /// Called once, from any thread, under the rules of `web::call::done`.
  void* owner = nullptr;
  void (*ended)(void* owner, store_call& what, std::exception_ptr failed) noexcept = nullptr;

  // The store's.
  std::shared_ptr<const s3_credentials> as;
  std::shared_ptr<const endpoint> at;
  std::string payload;  // the hash of the body
  std::uint64_t round = 0;
  bool renewed = false, resynced = false, moved = false;  // what was done about an answer already

  [[nodiscard]] bool succeeded() const noexcept { return reply.status / 100 == 2; }
  [[nodiscard]] refusal refused() const {
    return read_refusal(answer_of(reply), at ? std::string_view(at->region()) : std::string_view());
  }
  /// The error of an answer that is no success.
  [[nodiscard]] error failure_of_answer() const { return with_facts(error_of(refused(), doing)); }
};

/// An ETag in quotes, without W/: some stores leave quotes out of lists. Empty for one with nothing in its
/// quotes, which SeaweedFS gives an object of another store until it has its bytes.
[[nodiscard]] inline std::string tag_of(std::string_view tag) {
  if (tag.starts_with("W/")) tag.remove_prefix(2);
  if (tag == "\"\"") return {};
  const bool quoted = tag.size() > 1 && tag.starts_with('"') && tag.ends_with('"');
  return quoted || tag.empty() ? std::string(tag) : text({"\"", tag, "\""});
}

/// The query of a URL.
[[nodiscard]] inline std::string query_of(const std::vector<name_value>& items) {
  std::string line;
  for (const name_value& one : items) {
    if (!line.empty()) line += '&';
    append_encoded(line, one.name);
    line += '=';
    append_encoded(line, one.value);
  }
  return line;
}

}  // namespace penstock::inline v0_1::detail::s3
