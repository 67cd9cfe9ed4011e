// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/s3/requests/http_call.hpp>

#include "support/web_server.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock_test {

/// A gateway and two targets in this process, which answer as AIStore does where that is special. There is
/// one bucket, `bucket`, made in AIStore itself (`ais://bucket`).
///
/// From its documentation (docs/s3compat.md, docs/easy_url.md, docs/http_api.md of github.com/NVIDIA/aistore)
/// and sources (ais/prxs3.go, ais/tgts3.go, ais/proxy.go, ais/tgtobj.go, ais/s3/):
/// * `/s3/bucket/key`: GET is sent on to a target by 307, with a body of XML and a query in the Location;
/// HEAD
///   is answered by the gateway, which asks the target itself; so are lists, whose entries may have an empty
///   ETag, and which do not encode keys.
/// * `/ais/bucket/key`: GET is sent on by 301, HEAD by 307, to `/v1/objects/bucket/key?provider=ais&...`,
/// whose
///   answers have Ais-* headers, no ETag and no Last-Modified.
/// * If-Match is not looked at. One range is answered, several are not.
/// * Before December 2025 (pull request 250) a range came with the status 200 and a Content-Range, and
/// objects
///   whose checksum is not MD5 had no ETag.
class fake_aistore {
 public:
  enum class release { now, before_206 };

  explicit fake_aistore(release which = release::now)
      : which_(which),
        gateway_(answering([this](const web_request& request) { return at_gateway(request); })) {
    for (std::size_t i = 0; i < targets_.size(); ++i)
      targets_[i] = std::make_unique<web_server>(
          answering([this, i](const web_request& request) { return at_target(request, i); }));
  }

  void put(const std::string& key, std::string bytes) {
    const std::scoped_lock lock(mutex_);
    object& one = objects_[key];
    one.bytes = std::move(bytes);
    one.tag = "\"v1-" + std::to_string(std::hash<std::string>()(one.bytes)) + "-" +
              std::to_string(++versions_) + "\"";
  }
  /// The next requests at targets are refused; then every object is at the other target, as after a
  /// rebalance.
  void refuse_then_move(std::size_t requests) {
    const std::scoped_lock lock(mutex_);
    refused_ = requests;
  }

  /// The endpoint of its S3.
  [[nodiscard]] std::string endpoint() const { return gateway_.at("/s3"); }
  [[nodiscard]] std::string url(std::string_view key) const {
    return gateway_.at("/ais/bucket/") + std::string(key);
  }
  /// The heads of the requests that the gateway and a target got.
  [[nodiscard]] const web_log& gateway() const noexcept { return gateway_log_; }
  [[nodiscard]] const web_log& target(std::size_t which) const noexcept { return target_logs_[which]; }

 private:
  struct object {
    std::string bytes, tag;
  };

  [[nodiscard]] static std::string decoded(std::string_view text) {
    return penstock::detail::s3::form_decoded(text).value_or("");
  }
  /// The key in a target such as `/s3/bucket/key?query`; "" if there is none.
  [[nodiscard]] static std::string key_after(std::string_view target, std::string_view before) {
    if (!target.starts_with(before)) return {};
    return decoded(target.substr(before.size(), target.find('?') - before.size()));
  }
  [[nodiscard]] std::size_t target_of(const std::string& key) const {
    std::size_t sum = moved_ ? 1 : 0;
    for (const char c : key) sum += static_cast<unsigned char>(c);
    return sum % targets_.size();
  }
  std::string at_gateway(const web_request& request) {
    gateway_log_.add(request.head);
    const std::scoped_lock lock(mutex_);
    const std::string target = request.target();
    if (target.starts_with("/s3/bucket?")) return list(target.substr(11));
    constexpr std::string_view easy = "/ais/bucket/";
    const bool is_easy = target.starts_with(easy);
    const std::string key = key_after(target, is_easy ? easy : "/s3/bucket/");
    if (key.empty()) return web_answer("404 Not Found", "Content-Type: application/xml\r\n", no_object);
    if (!is_easy && request.method() == "HEAD") return found(request, key, false);
    const std::string path = target.substr(0, target.find('?'));
    const std::string to = targets_[target_of(key)]->at(
        (is_easy ? "/v1/objects/bucket/" + path.substr(easy.size()) + "?provider=ais&" : path + "?") +
        "pid=p1&utm=" + std::to_string(++redirects_));
    if (is_easy)
      return web_answer(
          request.method() == "HEAD" ? "307 Temporary Redirect" : "301 Moved Permanently",
          "Location: " + to + "\r\nContent-Type: text/html; charset=utf-8\r\n",
          request.method() == "HEAD" ? "" : "<a href=\"" + to + "\">Moved Permanently</a>.\n\n");
    return web_answer("307 Temporary Redirect",
                      "Location: " + to + "\r\nContent-Type: text/xml; charset=utf-8\r\nServer: AIStore\r\n",
                      "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>TemporaryRedirect</Code>"
                      "<Message>Redirect</Message><Endpoint>127.0.0.1/s3</Endpoint><Bucket>bucket</Bucket>"
                      "</Error>");
  }
  std::string at_target(const web_request& request, std::size_t which) {
    target_logs_[which].add(request.head);
    const std::scoped_lock lock(mutex_);
    if (refused_ != 0) {
      if (--refused_ == 0) moved_ = !moved_;
      return web_answer("503 Service Unavailable", "", "");
    }
    const std::string target = request.target();
    const bool native = target.starts_with("/v1/objects/bucket/");
    const std::string key = key_after(target, native ? "/v1/objects/bucket/" : "/s3/bucket/");
    if (target.find("pid=p1&utm=") == std::string::npos || target_of(key) != which)
      return web_answer("400 Bad Request", "", "is expected to be redirected");
    return found(request, key, native);
  }
  [[nodiscard]] std::string found(web_request request, const std::string& key, bool native) const {
    const auto at = objects_.find(key);
    if (at == objects_.end())
      return web_answer("404 Not Found", "Content-Type: application/xml\r\n",
                        request.method() == "HEAD" ? std::string_view() : no_object);
    if (const std::size_t match = request.head.find("\r\nIf-Match: "); match != std::string::npos)
      request.head.erase(match, request.head.find("\r\n", match + 2) - match);
    const bool before = which_ == release::before_206;
    std::string answer = web_object(request, at->second.bytes, native || before ? "" : at->second.tag);
    if (before && answer.starts_with("HTTP/1.1 206 Partial Content"))
      answer.replace(0, 28, "HTTP/1.1 200 OK");
    answer.insert(answer.find("\r\n") + 2, native ? "Ais-Checksum-Type: xxhash\r\n"
                                                    "Ais-Checksum-Value: fd0f7acc8e278588\r\n"
                                                    "Ais-Atime: 1796000000000000000\r\n"
                                                    "Content-Type: application/octet-stream\r\n"
                                                  : "Accept-Ranges: bytes\r\n");
    return answer;
  }
  [[nodiscard]] std::string list(std::string_view query) const {
    std::string prefix;
    if (const std::size_t at = query.find("prefix="); at != std::string_view::npos)
      prefix = decoded(query.substr(at + 7, query.find('&', at) - at - 7));
    std::string body = "<ListBucketResult><Name>bucket</Name>";
    for (const auto& [key, one] : objects_)
      if (key.starts_with(prefix))
        body +=
            "<Contents><Key>" + key + "</Key><LastModified>2026-11-28T00:00:00Z</LastModified><ETag></ETag>" +
            "<StorageClass></StorageClass><Size>" + std::to_string(one.bytes.size()) + "</Size></Contents>";
    return web_answer("200 OK", "Content-Type: application/xml\r\n",
                      body + "<IsTruncated>false</IsTruncated></ListBucketResult>");
  }

  static constexpr std::string_view no_object =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code></Code><Message>does not "
      "exist</Message></Error>";

  release which_;
  std::mutex mutex_;
  std::map<std::string, object> objects_;
  std::size_t versions_ = 0, redirects_ = 0, refused_ = 0;
  bool moved_ = false;
  web_log gateway_log_;
  std::array<web_log, 2> target_logs_;
  std::array<std::unique_ptr<web_server>, 2> targets_;
  web_server gateway_;  // ends first
};

}  // namespace penstock_test
