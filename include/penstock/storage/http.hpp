// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<boost/beast/http/parser.hpp>) || !__has_include(<openssl/ssl.h>)
#error "penstock/storage/http.hpp needs Boost.Beast and OpenSSL: link penstock::http"
#endif

#include <penstock/storage/braces.hpp>
#include <penstock/storage/resilience/retried_session.hpp>
#include <penstock/storage/sidecar.hpp>
#include <penstock/storage/web/web_objects.hpp>

namespace penstock::inline v0_1 {

/// Storage of objects on servers of HTTP and HTTPS: a URL, a pattern, or a list of URLs.
///
///     const http shards("https://data.example.com/train-{0000..0127}.tar");
///     const http at_home({"https://10.0.0.7/0.tar?version=3"}, {.connections = 64, .ca_file = "my_ca.pem"});
///
/// In: URLs as `parse_url` takes them. Braces of a pattern, up to its query, are expanded by `expand_braces`;
/// URLs of a list are taken as they are. Nothing is opened before `connect`, and no request sent before the
/// first use.
/// A session reads each range by one GET. One thread, started by the first request, has up to `connections`
/// of them in flight, on connections that are kept open, and starts them in the order in which they were
/// given. The bytes go from the socket straight to their place, but for those of second requests.
/// Size and ETag of an object are asked for at its first use, or come with its first range. From then on the
/// session insists on this object: each request carries `If-Match` if the ETag is a strong one, and an object
/// that was replaced is an error, never a mixture. Without a strong ETag, size, weak ETag and Last-Modified
/// are compared, as far as the server gives them. Servers behind one name must give one ETag.
/// HTTPS is TLS 1.2 or newer, and the server must prove to be the host. Redirects are followed up to five
/// times, but never from https to http. Proxies are those of the environment, as for curl; https goes through
/// them by CONNECT. A host with several addresses, IPv6 or IPv4, is tried at each.
/// Secrets: `names`, errors and descriptions show a URL's query as `?...`. A user or password in a URL is
/// refused.
/// Errors: errc::io, with URL, offset and what to do. They recur (see `error::recurs`) if the server says so:
/// 404, 403, 401, 410, 412 (replaced), ranges that are ignored or encoded, a certificate or a redirect that
/// is refused, https to a port that does not speak TLS. They do not for broken connections, for what lasted
/// longer or came slower than the options allow, and for 408, 429 and 5xx; `http_error` has the status, and
/// answers 429 and 503 have what Retry-After asks for (see `error::retry_after_ms`).
/// errc::format for a range beyond the end, errc::argument for URLs and options that make no sense.
/// Failures that may pass are retried, as by `retrying`: by default up to ten attempts within about half a
/// minute, and within 15 s while no connection can be made. No more requests are in flight than the server
/// can handle, as by `throttled`. A read that is late gets a second request on another connection, as by
/// `hedged`. The options `retries`, `throttle` and `hedges` set them, or switch them off:
/// `{.retries = {.attempts = 1}, .throttle = {.max_in_flight = 0}, .hedges = {.max_extra_requests = 0}}`.
/// A kept connection that the server had closed before the request is replaced in any case.
/// Threads: any number of threads may use a session. `cancel` ends all requests in flight at once. Destroying
/// the session does so too, and waits for the look-up of a host's name if one is in progress. A child after
/// `fork` must neither use nor destroy a session.
/// Cost: a request is about ten small allocations in the session's thread, none in the caller's memory.
/// Source: RFC 9110 and 9112.
class http {
 public:
  static constexpr std::string_view schemes[] = {"http", "https"};

  /// What a run reads through; see `background_session`.
  using session = detail::retried_session<detail::plain_http>;

  explicit http(std::string_view pattern, http_options options = {})
      : http(expanded(pattern), std::string(pattern), std::move(options)) {}
  explicit http(std::vector<std::string> urls, http_options options = {})
      : http(std::move(urls), {}, std::move(options)) {}
  http(std::initializer_list<const char*> urls, http_options options = {})
      : http(std::vector<std::string>(urls.begin(), urls.end()), std::move(options)) {}

  /// The URLs, without their queries.
  [[nodiscard]] std::span<const std::string> names() const noexcept { return list_->names; }
  /// Throws errc::argument for a `ca_file` that cannot be used, and for proxies that are no URLs.
  [[nodiscard]] session connect() const {
    return {detail::plain_http(list_, options_), detail::policy_of(options_)};
  }
  /// See `has_sidecars`; queries stay as they are.
  [[nodiscard]] http sidecars(sidecar which) const {
    std::vector<std::string> urls;
    for (url one : list_->urls) {
      one.path = which.of(one.path);
      urls.push_back(one.text());
    }
    return with_names(std::move(urls));
  }
  /// See `renaming_storage`: `names` are URLs.
  [[nodiscard]] http with_names(std::vector<std::string> names) const {
    return http(std::move(names), {}, options_);
  }
  [[nodiscard]] std::string describe() const {
    const std::string what =
        list_->pattern.empty() ? detail::text({names().size(), " URLs"}) : without_secrets(list_->pattern);
    return detail::text({"http(", what, ", ", options_.connections, " connections",
                         options_.verify ? "" : ", certificates not verified", ")"});
  }

 private:
  http(std::vector<std::string> urls, std::string pattern, http_options options)
      : options_(std::move(options)) {
    detail::check(options_);
    (void)detail::policy_of(options_);
    auto list = std::make_unique<detail::web::object_urls>();
    list->pattern = std::move(pattern);
    for (const std::string& one : urls) {
      list->urls.push_back(parse_url(one));
      if (list->urls.back().scheme == "s3")
        throw error(errc::argument, {"http reads http:// and https://, not ", without_secrets(one)});
      list->names.push_back(list->urls.back().without_secrets());
    }
    list_.reset(list.release());
  }
  /// The query stays out of it: it may be a secret, and errors of patterns show the pattern.
  [[nodiscard]] static std::vector<std::string> expanded(std::string_view pattern) {
    const std::string_view head = pattern.substr(0, pattern.find_first_of("?#"));
    if (without_secrets(head) != head) return {std::string(pattern)};  // refused, without showing it
    if (head.find('*') != std::string_view::npos)
      throw error(
          errc::argument,
          {"'", head,
           "' has a *, which http does not expand, since a server does not list its files: "
           "write braces, as in train-{0000..0127}.tar, or a list of URLs; in a URL itself a * is %2A"});
    std::vector<std::string> urls = expand_braces(head);
    for (std::string& one : urls) one += pattern.substr(head.size());
    return urls;
  }

  shared<const detail::web::object_urls> list_;
  http_options options_;
};

static_assert(has_sidecars<http>() && background_session<http::session>,
              "http is a storage that reads in the background");

}  // namespace penstock::inline v0_1
