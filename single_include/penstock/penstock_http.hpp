// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Penstock 0.1.0, the component http. It needs penstock.hpp beside it.
// Made by tools/amalgamate.py from include/penstock; do not edit.
#pragma once

#if !__has_include(<boost/beast/http/parser.hpp>) || !__has_include(<openssl/ssl.h>)
#error "penstock_http.hpp needs Boost.Beast and OpenSSL: link penstock::http"
#endif
#if !__has_include(<boost/beast/http/fields.hpp>) || !__has_include(<openssl/ssl.h>)
#error "penstock_http.hpp needs Boost.Beast and OpenSSL: link penstock::http"
#endif
#if !__has_include(<boost/asio/io_context.hpp>) || !__has_include(<openssl/ssl.h>)
#error "penstock_http.hpp needs Boost.Asio and OpenSSL: link penstock::http"
#endif
#if !__has_include(<boost/asio/ip/tcp.hpp>) || !__has_include(<openssl/ssl.h>)
#error "penstock_http.hpp needs Boost.Asio and OpenSSL: link penstock::http"
#endif
#if !__has_include(<boost/beast/http/verb.hpp>) || !__has_include(<openssl/ssl.h>)
#error "penstock_http.hpp needs Boost.Beast and OpenSSL: link penstock::http"
#endif
#if !__has_include(<boost/asio/ssl/context.hpp>) || !__has_include(<openssl/ssl.h>)
#error "penstock_http.hpp needs Boost.Asio and OpenSSL: link penstock::http"
#endif

#include "penstock.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <exception>
#include <fcntl.h>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/sslerr.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

// ---- penstock/storage/web/web_boost.hpp

// Asio and Boost.Asio of 2020 have namespaces of the same names outside their own, so that no file could
// include both. Those of Boost get other names here; in newer versions they have.
#define asio_execution_bulk_execute_fn boost_asio_execution_bulk_execute_fn
#define asio_execution_connect_fn boost_asio_execution_connect_fn
#define asio_execution_execute_fn boost_asio_execution_execute_fn
#define asio_execution_schedule_fn boost_asio_execution_schedule_fn
#define asio_execution_set_done_fn boost_asio_execution_set_done_fn
#define asio_execution_set_error_fn boost_asio_execution_set_error_fn
#define asio_execution_set_value_fn boost_asio_execution_set_value_fn
#define asio_execution_start_fn boost_asio_execution_start_fn
#define asio_execution_submit_fn boost_asio_execution_submit_fn
#define asio_prefer_fn boost_asio_prefer_fn
#define asio_query_fn boost_asio_query_fn
#define asio_require_concept_fn boost_asio_require_concept_fn
#define asio_require_fn boost_asio_require_fn

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/verb.hpp>

#undef asio_execution_bulk_execute_fn
#undef asio_execution_connect_fn
#undef asio_execution_execute_fn
#undef asio_execution_schedule_fn
#undef asio_execution_set_done_fn
#undef asio_execution_set_error_fn
#undef asio_execution_set_value_fn
#undef asio_execution_start_fn
#undef asio_execution_submit_fn
#undef asio_prefer_fn
#undef asio_query_fn
#undef asio_require_concept_fn
#undef asio_require_fn

namespace penstock::inline v0_1::detail::web {

namespace net = boost::asio;
using boost::system::error_code;

}  // namespace penstock::inline v0_1::detail::web

// ---- penstock/storage/web/web_call.hpp

/// Requests over HTTP, and what storages such as `http` are built upon.
namespace penstock::inline v0_1::detail::web {

using boost::beast::http::verb;

/// What a server answered.
struct answer {
  unsigned status = 0;
  boost::beast::http::fields fields;
  /// The body, if it did not go to a range's memory; at most `call::max_body` bytes.
  std::string body;
  /// The body was larger and was not read.
  bool cut = false;
  /// The length that the server gave, also in the answer to HEAD.
  std::optional<std::uint64_t> length;

  /// The value of a header; "" if there is none.
  [[nodiscard]] std::string_view header(std::string_view name) const {
    const auto found = fields.find(boost::beast::string_view(name.data(), name.size()));
    return found == fields.end() ? std::string_view()
                                 : std::string_view(found->value().data(), found->value().size());
  }
  [[nodiscard]] std::optional<std::chrono::seconds> retry_after() const {
    const std::string_view text = header("Retry-After");
    return text.empty() ? std::nullopt : parse_retry_after(text, std::time(nullptr));
  }
};

/// A request, and where its answer goes. The caller owns it and keeps it until `done`; the client calls that
/// once, from its thread, for each call it took. It must neither wait nor destroy the client.
struct call {
  using header = std::pair<std::string, std::string>;
  static constexpr std::uint64_t no_range = ~std::uint64_t{0};

  verb method = verb::get;
  url where;
  /// The name of the object, for errors; it outlives the call. Empty: the URL without its query.
  std::string_view name;
  std::vector<header> headers;
  /// None of them is for another origin; otherwise only those that `client` knows as secrets stay behind.
  bool headers_stay = false;
  std::string body;
  /// With an `offset`, GET asks for `into.size()` bytes from there on. If the server gives exactly these
  /// (206, or 200 if they are the whole object), they go straight to `into`.
  std::uint64_t offset = no_range;
  mutable_bytes into;
  /// A strong ETag, quotes included; it outlives the call.
  std::string_view if_match;
  /// What is known of the object's size; an answer that says otherwise is of
  /// another object.
  std::uint64_t size = no_range;
  std::size_t max_body = 65'536;
  /// Whether Content-Encoding says how an object is stored, as in S3, and not what was done on the way.
  bool stored_encoded = false;
  bool follow_redirects = true;
  /// By what `client::abandon` finds the call; none: it is not found.
  std::optional<std::uint64_t> tag;
  /// Called before each attempt, from the client's thread, with the headers of the request as lines; it may
  /// append lines, each with its "\r\n". After a redirect `been` says so, and nothing may be told to the new
  /// host that is not meant for it.
  void* signer = nullptr;
  void (*sign)(void* signer, const call& what, std::string& lines) = nullptr;

  void* self = nullptr;
  /// `failed` is null if there is an answer, whatever its status.
  void (*done)(void* self, call& what, std::exception_ptr failed) noexcept = nullptr;

  answer reply;

  [[nodiscard]] bool has_range() const noexcept { return offset != no_range; }
  /// The object's name in errors.
  [[nodiscard]] std::string shown() const {
    return name.empty() ? where.without_secrets() : std::string(name);
  }
  /// Puts the facts of this call into an error.
  template <class Error>
  [[nodiscard]] Error&& with_facts(Error&& made) const {
    made.in_file(shown());
    if (has_range()) made.at_offset(offset);
    return std::forward<Error>(made);
  }
  [[nodiscard]] error failure(std::initializer_list<piece> message) const {
    return with_facts(error(errc::io, message));
  }

  // The client's.
  std::uint64_t number = 0;
  std::chrono::steady_clock::time_point begun{};  // redirects and further connections do not change it
  bool replaced = false;                          // its connection had been closed, and it got another one
  std::vector<url> been;                          // where redirects came from
};

/// The error of a call that was ended by `cancel`.
inline std::exception_ptr cancelled(const call& what) noexcept {
  try {
    throw what.with_facts(error(errc::stopped, "the read was cancelled"));
  } catch (...) {  // perhaps there was no memory for the message
    return std::current_exception();
  }
}

}  // namespace penstock::inline v0_1::detail::web

// ---- penstock/storage/web/web_answer_reader.hpp

namespace penstock::inline v0_1::detail::web {

/// Takes the bytes of answers apart as they arrive: the header, and a body in chunks or up to the end of the
/// connection. Bytes that came with the header of a body whose length is known are handed out.
///
/// `room`, then `arrived`, then `read_head` or `read_body`, until it does not want `more`.
class answer_reader {
  using head_parser = boost::beast::http::response_parser<boost::beast::http::empty_body>;
  using body_parser = boost::beast::http::response_parser<boost::beast::http::string_body>;
  static constexpr std::uint32_t max_header = 32'768;
  static constexpr std::size_t read_size = 4096;

 public:
  static constexpr std::size_t max_buffered = 65'536;
  enum class state : std::uint8_t {
    done,
    more,
    malformed,    ///< `fault` says why
    overflowing,  ///< a header, or that of a chunk, that does not end
    too_long,     ///< a body of more bytes than were allowed
  };

  /// Begins with the next answer; bytes that are left belong to it. That of HEAD has no body.
  void begin(bool without_body) {
    body_.reset();
    next_head(without_body);
  }
  [[nodiscard]] net::mutable_buffer room() { return in_.prepare(read_size); }
  void arrived(std::size_t size) { in_.commit(size); }
  /// How many bytes wait to be taken.
  [[nodiscard]] std::size_t waiting() const noexcept { return in_.size(); }

  /// Headers of provisional answers (1xx) are skipped.
  [[nodiscard]] state read_head() {
    for (;;) {
      fault_ = {};
      in_.consume(head_->put(in_.cdata(), fault_));
      if (fault_ == boost::beast::http::error::need_more) fault_ = {};
      if (fault_) return state::malformed;
      if (!head_->is_header_done()) return if_room();
      const unsigned now = status();
      if (now < 100) {  // the parser wants three digits, whatever they are
        fault_ = boost::beast::http::error::bad_status;
        return state::malformed;
      }
      if (now >= 200 || now == 101) return state::done;
      next_head(without_body_);
      if (in_.size() == 0) return state::more;
    }
  }
  [[nodiscard]] const error_code& fault() const noexcept { return fault_; }
  /// Whether what waits is an alert of TLS: its type, and the first byte of its version.
  [[nodiscard]] bool is_tls() const noexcept {
    const auto* const bytes = static_cast<const unsigned char*>(in_.cdata().data());
    return in_.size() >= 2 && bytes[0] == 0x15 && bytes[1] == 0x03;
  }

  // ---- After the header

  [[nodiscard]] unsigned status() const { return head_->get().result_int(); }
  /// Whether no body follows.
  [[nodiscard]] bool is_done() const { return head_->is_done(); }
  /// Whether the other side keeps the connection.
  [[nodiscard]] bool keeps() const { return head_->keep_alive(); }
  /// Puts the header into an answer. Returns whether a body follows whose length it does not say.
  [[nodiscard]] bool take_head(answer& into) {
    into.status = status();
    if (const auto length = head_->content_length()) into.length = *length;
    const bool unknown = head_->chunked() || (!head_->is_done() && !into.length);
    // The parser of a body that has to be unpacked needs the header; of all others it goes to the answer.
    if (!head_->is_done() && unknown)
      into.fields = head_->get();
    else
      into.fields = std::move(static_cast<boost::beast::http::fields&>(head_->get()));
    return unknown;
  }
  /// Moves bytes that came with the header to their place. Returns how many.
  [[nodiscard]] std::size_t take(mutable_bytes into) {
    const std::size_t here = std::min(in_.size(), into.size());
    if (here != 0) std::memcpy(into.data(), in_.cdata().data(), here);
    in_.consume(here);
    return here;
  }

  // ---- A body in chunks, or up to the end of the connection

  void begin_body(std::size_t maximum) {
    body_.emplace(std::move(*head_));
    body_->body_limit(maximum);
    body_->eager(true);
  }
  [[nodiscard]] state read_body() {
    while (!body_->is_done() && in_.size() != 0) {
      fault_ = {};
      const std::size_t used = body_->put(in_.cdata(), fault_);
      in_.consume(used);
      if (fault_ == boost::beast::http::error::need_more) break;
      if (fault_ == boost::beast::http::error::body_limit) return state::too_long;
      if (fault_) return state::malformed;
      if (used == 0) break;
    }
    return body_->is_done() ? state::done : if_room();
  }
  /// The connection has ended. Returns whether the body had, too.
  [[nodiscard]] bool end_body() {
    fault_ = {};
    body_->put_eof(fault_);
    return !fault_;
  }
  /// Whether there is one, and its bytes so far.
  [[nodiscard]] bool has_body() const noexcept { return body_.has_value(); }
  [[nodiscard]] std::string& body() { return body_->get().body(); }

 private:
  void next_head(bool without_body) {
    head_.emplace();
    head_->header_limit(max_header);
    // none would refuse every body in Boost 1.74
    head_->body_limit(std::numeric_limits<std::uint64_t>::max());
    head_->skip(without_body);
    without_body_ = without_body;
  }
  [[nodiscard]] state if_room() const noexcept {
    return in_.size() + read_size > max_buffered ? state::overflowing : state::more;
  }

  boost::beast::flat_buffer in_{max_buffered};
  std::optional<head_parser> head_;
  std::optional<body_parser> body_;
  error_code fault_;
  bool without_body_ = false;
};

}  // namespace penstock::inline v0_1::detail::web

// ---- penstock/storage/web/web_tls.hpp

namespace penstock::inline v0_1::detail::web {

/// Whether a host is an address; certificates name those in another way, and SNI not at all.
inline bool is_address(const std::string& host) noexcept {
  std::array<unsigned char, 16> address{};
  return ::inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

/// What all connections of a client trust: TLS 1.2 or newer, and the system's certificates or those of a
/// file.
/// Throws errc::argument for a file that cannot be used.
inline boost::asio::ssl::context tls_context(const std::string& ca_file, bool verify) {
  namespace ssl = boost::asio::ssl;
  ssl::context made(ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(made.native_handle(), TLS1_2_VERSION);
  made.set_verify_mode(verify ? ssl::verify_peer : ssl::verify_none);
  boost::system::error_code failed;
  if (!ca_file.empty()) {
    made.load_verify_file(ca_file, failed);
    if (failed)
      throw error(errc::argument, {"http_options::ca_file cannot be used: ", failed.message(),
                                   "; it must hold certificates in the PEM format"})
          .in_file(ca_file);
    return made;
  }
  made.set_default_verify_paths(failed);
  // An OpenSSL that was not built for this system looks for certificates in a place of its own.
  if (std::getenv(X509_get_default_cert_file_env()) == nullptr &&
      ::access(X509_get_default_cert_file(), R_OK) != 0) {
    for (const char* const known : {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                                    "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}) {
      if (::access(known, R_OK) != 0) continue;
      made.load_verify_file(known, failed);
      break;
    }
  }
  return made;
}

/// Names the host that the server must prove to be. The dot that ends an absolute name is in no certificate.
inline void expect_host(SSL* tls, std::string host, bool verify) {
  if (host.ends_with('.')) host.pop_back();
  const bool address = is_address(host);
  if (!address) SSL_set_tlsext_host_name(tls, host.c_str());
  if (!verify) return;
  SSL_set_hostflags(tls, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  const int set = address ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls), host.c_str())
                          : SSL_set1_host(tls, host.c_str());
  if (set != 1) throw error(errc::io, "OpenSSL did not accept the host's name");
}

/// The error of a handshake: what is wrong with the certificate, or what OpenSSL says.
inline error tls_failure(const call& what, SSL* tls, const boost::system::error_code& code) {
  const int reason = ERR_GET_REASON(static_cast<unsigned long>(code.value()));
  if (code.category() == net::error::get_ssl_category() &&
      (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST ||
       reason == SSL_R_PACKET_LENGTH_TOO_LONG))
    return what.failure({"the server does not speak TLS at this port; write http://, or the port of https"})
        .recurring();
  const long found = SSL_get_verify_result(tls);
  // a certificate that nobody looks at is not why it failed
  if (found == X509_V_OK || SSL_get_verify_mode(tls) == SSL_VERIFY_NONE)
    return what.failure({"no connection by TLS: ", code.message()});
  std::string line = "the server's certificate is refused: ";
  switch (found) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      append(line, {"it is of another host than ", what.where.host, "; use a name that the certificate has"});
      break;
    case X509_V_ERR_CERT_HAS_EXPIRED:
      line += "it has expired; the server needs a new one, or this machine's clock is wrong";
      break;
    case X509_V_ERR_CERT_NOT_YET_VALID:
      line += "it is not valid yet; this machine's clock may be wrong";
      break;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      append(line, {"nobody who is trusted has signed it (", X509_verify_cert_error_string(found),
                    "); if it is right, name its authority's certificate in http_options::ca_file"});
      break;
    default:
      line += X509_verify_cert_error_string(found);
  }
  return what.with_facts(error(errc::io, line)).recurring();
}

}  // namespace penstock::inline v0_1::detail::web

// ---- penstock/storage/web/web_connection.hpp

namespace penstock::inline v0_1::detail::web {

using clock = std::chrono::steady_clock;

/// What a client has counted.
struct counts {
  std::atomic<std::uint64_t> requests{0}, bytes{0}, connections{0}, slow_downs{0};
};

/// Finds the addresses of hosts. However many connections wait for a name, it
/// is looked up once, since Boost.Asio does one look-up after the other; what
/// was found holds for a moment. The address that was reached last comes first.
class address_book {
 public:
  using address = net::ip::tcp::endpoint;
  using addresses = std::vector<address>;
  /// Whom to tell, and what it knows the look-up by.
  struct listener {
    std::shared_ptr<void> self;
    std::uint64_t lookup;
    void (*told)(void* self, std::uint64_t lookup, const error_code&, const addresses&) noexcept;
  };

  explicit address_book(net::io_context& io) : resolver_(io) {}
  /// Tells the listener later, unless the addresses are known: then at once.
  void find(const std::string& host, std::uint16_t port, listener who) {
    entry& one = hosts_[{host, port}];
    if (one.waiting.empty() && clock::now() < one.until) {
      const addresses found = one.found;
      return who.told(who.self.get(), who.lookup, {}, found);
    }
    one.waiting.push_back(std::move(who));
    if (one.waiting.size() != 1) return;
    try {
      resolver_.async_resolve(
          host, std::to_string(port),
          [&one](const error_code& code, const net::ip::tcp::resolver::results_type& found) {
            one.note(code, found);
          });
    } catch (...) {
      one.waiting.pop_back();
      throw;
    }
  }
  /// Notes which of a host's addresses was reached.
  void reached(const std::string& host, std::uint16_t port, const address& where) {
    const auto one = hosts_.find({host, port});
    if (one == hosts_.end()) return;
    one->second.good = where;
    one->second.put_good_first(one->second.found);
  }

 private:
  static constexpr std::chrono::seconds kept{5};
  struct entry {
    addresses found;
    std::optional<address> good;
    clock::time_point until{};
    std::vector<listener> waiting;

    void put_good_first(addresses& all) const {
      const auto at = good ? std::find(all.begin(), all.end(), *good) : all.end();
      if (at != all.end()) std::rotate(all.begin(), at, at + 1);
    }
    void note(error_code code, const net::ip::tcp::resolver::results_type& results) noexcept {
      found.clear();
      addresses now;
      try {
        for (const auto& one : results) now.push_back(one.endpoint());
        put_good_first(now);
        found = now;
      } catch (...) {
        code = net::error::no_memory;
      }
      until = code ? clock::time_point() : clock::now() + kept;
      for (const listener& each : std::exchange(waiting, {}))
        each.told(each.self.get(), each.lookup, code, now);
    }
  };
  net::ip::tcp::resolver resolver_;
  std::map<std::pair<std::string, std::uint16_t>, entry> hosts_;
};

/// What all connections of a client share. All of it belongs to the client's
/// thread.
struct common {
  explicit common(const http_options& chosen) : options(chosen) {
    if (!options.ca_file.empty()) (void)tls();  // a file that cannot be used is an error at once
  }
  net::ssl::context& tls() {
    if (!trusted) trusted.emplace(tls_context(options.ca_file, options.verify));
    return *trusted;
  }

  http_options options;
  std::optional<net::ssl::context> trusted;
  counts counted;
  net::io_context io{1};
  address_book names{io};
};

/// A connection to a server, perhaps through a proxy: finds the addresses, connects to one of them, asks the
/// proxy for a tunnel, and agrees on TLS. Each step ends in `Self`'s `opened` or `failed`. One operation is
/// in progress at a time, but for attempts to connect, and each keeps the connection alive.
///
/// An address that has not answered after a moment is not waited for: the next one is tried beside it, and
/// the first that is reached is used. Source: RFC 8305.
template <class Self>
class transport : public std::enable_shared_from_this<Self> {
  using plain_step = void (Self::*)(const error_code&);

 public:
  /// Why an operation was ended from outside.
  enum class reason : std::uint8_t {
    none,
    stopped,
    connect_late,
    first_byte_late,
    progress_late,
    too_slow,
    too_long,
  };

  transport(common& all, const url& origin, const http_proxy* proxy)
      : all_(all), origin_(origin), proxy_(proxy), socket_(all.io) {}
  transport(const transport&) = delete;
  transport& operator=(const transport&) = delete;

  /// Whether this connection can serve that URL.
  [[nodiscard]] bool serves(const url& where, const http_proxy* proxy) const noexcept {
    if (proxy != proxy_) return false;
    return proxy_ != nullptr && origin_.scheme == "http" ? where.scheme == "http"
                                                         : where.same_origin(origin_);
  }
  /// Ends the operation in progress: it reports that it was ended.
  void abandon(reason why) {
    if (why_ != reason::none) return;
    why_ = why;
    if (resolving_) {  // the look-up itself cannot be ended; its result is ignored
      net::post(all_.io, [self = this->shared_from_this(), lookup = lookup_] {
        if (lookup != self->lookup_ || !self->resolving_) return;
        ++self->lookup_;
        self->resolving_ = false;
        self->failed(net::error::operation_aborted);
      });
    } else {
      close();
    }
  }
  /// Ends what has lasted too long.
  void check_time(clock::time_point now) {
    if (now >= until_) return abandon(late_);
    if (connecting_ && now >= next_at_ && attempts_.size() != addresses_.size()) guard([&] { try_next(); });
  }
  /// Whether the other side has sent something, or ended, while nothing was
  /// asked of it. What it sent would be taken for the next answer.
  [[nodiscard]] bool has_spoken() {
    char one = 0;
    if (tls_) {  // it may have been decrypted with the end of the last answer
      ERR_clear_error();
      const int had = SSL_peek(tls_->native_handle(), &one, 1);
      const bool waits = had <= 0 && SSL_get_error(tls_->native_handle(), had) == SSL_ERROR_WANT_READ;
      ERR_clear_error();
      if (!waits) return true;
    }
    const auto got = ::recv(socket_.native_handle(), &one, 1, MSG_PEEK | MSG_DONTWAIT);
    return got >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
  }
  void close() {
    error_code ignored;
    socket_.close(ignored);
    for (const auto& one : attempts_) one->close(ignored);
  }

 protected:
  void open() {
    wait_until(clock::now() + all_.options.connect_time, reason::connect_late);
    const url& to = proxy_ != nullptr ? proxy_->where : origin_;
    error_code none;
    const net::ip::address address = net::ip::make_address(to.host, none);
    if (!none) {
      addresses_.assign(1, {address, to.port_number()});
      return connect();
    }
    resolving_ = true;
    all_.names.find(to.host, to.port_number(),
                    {this->shared_from_this(), ++lookup_,
                     [](void* self, std::uint64_t lookup, const error_code& code,
                        const address_book::addresses& found) noexcept {
                       static_cast<Self*>(self)->looked_up(lookup, code, found);
                     }});
  }

  /// Reads at least one byte.
  template <class Handler>
  void read_some(net::mutable_buffer into, Handler handler) {
    if (tls_)
      tls_->async_read_some(into, std::move(handler));
    else
      socket_.async_read_some(into, std::move(handler));
  }
  template <class Handler>
  void write(const std::array<net::const_buffer, 2>& from, Handler handler) {
    if (tls_)
      net::async_write(*tls_, from, std::move(handler));
    else
      net::async_write(socket_, from, std::move(handler));
  }

  /// A handler that calls a member, keeps the connection alive, and turns exceptions into a failure.
  template <class... Args>
  auto then(void (Self::*step)(const error_code&, Args...)) {
    return [self = this->shared_from_this(), step](const error_code& code, Args... args) {
      self->guard([&] {
        if (self->why_ != reason::none) return self->failed(code);
        (self.get()->*step)(code, args...);
      });
    };
  }
  /// Tells of an exception outside of its handler: whoever waits for the call may free it before the handler
  /// ends.
  template <class Step>
  void guard(Step step) {
    std::exception_ptr failed;
    try {
      step();
    } catch (...) {
      failed = std::current_exception();
    }
    if (failed) self().broke(std::move(failed));
  }
  void wait_until(clock::time_point until, reason late) noexcept {
    until_ = until;
    late_ = late;
  }
  /// After a tunnel was opened, or without one: TLS if the URL asks for it.
  void secure() {
    if (origin_.scheme == "http") return self().opened();
    tls_.emplace(socket_, all_.tls());
    expect_host(tls_->native_handle(), origin_.host, all_.options.verify);
    tls_->async_handshake(net::ssl::stream_base::client, then(plain_step(&transport::shaken)));
  }
  void shaken(const error_code& code) {
    if (code) return self().failed_with(tls_failure(self().current(), tls_->native_handle(), code));
    self().opened();
  }

  [[nodiscard]] bool tunnels() const noexcept { return proxy_ != nullptr && origin_.scheme != "http"; }
  /// The URL is given whole: a proxy takes it from there.
  [[nodiscard]] bool asks_proxy() const noexcept { return proxy_ != nullptr && origin_.scheme == "http"; }

  common& all_;
  url origin_;
  const http_proxy* proxy_;
  reason why_ = reason::none;

 private:
  Self& self() noexcept { return static_cast<Self&>(*this); }

  void looked_up(std::uint64_t lookup, const error_code& code,
                 const address_book::addresses& found) noexcept {
    if (lookup != lookup_) return;
    resolving_ = false;
    guard([&] {
      if (code || why_ != reason::none) return self().failed(code);
      addresses_ = found;
      connect();
    });
  }
  void connect() {
    if (addresses_.empty()) return self().failed(net::error::host_not_found);
    connecting_ = true;
    try_next();
  }
  void try_next() {
    const std::size_t number = attempts_.size();
    const auto now = clock::now();
    next_at_ = now + std::min<clock::duration>(before_next, (until_ - now) / 8);
    attempts_.push_back(std::make_unique<net::ip::tcp::socket>(all_.io));
    net::ip::tcp::socket& socket = *attempts_.back();
    error_code failed;
    socket.open(addresses_[number].protocol(), failed);  // async_connect reports it if that failed
    if (!failed) ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);  // not for programs that are started
    socket.async_connect(addresses_[number],
                         [self = this->shared_from_this(), number](const error_code& code) {
                           self->guard([&] { self->tried(number, code); });
                         });
    ++pending_;
  }
  void tried(std::size_t number, const error_code& code) {
    --pending_;
    if (!connecting_ || self().is_idle()) return;  // another address was faster, or all is over
    if (why_ != reason::none || (code && pending_ == 0 && attempts_.size() == addresses_.size())) {
      connecting_ = false;
      return self().failed(code);
    }
    if (!code) {
      connecting_ = false;
      socket_ = std::move(*attempts_[number]);
      attempts_.clear();
      const url& to = proxy_ != nullptr ? proxy_->where : origin_;
      all_.names.reached(to.host, to.port_number(), addresses_[number]);
      return reached();
    }
    if (attempts_.size() != addresses_.size()) try_next();
  }
  void reached() {
    error_code ignored;
    socket_.set_option(net::ip::tcp::no_delay(true), ignored);
    all_.counted.connections.fetch_add(1, std::memory_order_relaxed);
    if (tunnels()) return self().ask_for_tunnel();
    secure();
  }

  static constexpr std::chrono::milliseconds before_next{250};

  net::ip::tcp::socket socket_;
  std::optional<net::ssl::stream<net::ip::tcp::socket&>> tls_;
  address_book::addresses addresses_;
  std::vector<std::unique_ptr<net::ip::tcp::socket>> attempts_;  // to connect, one for each address
  std::size_t pending_ = 0;                                      // of them
  std::uint64_t lookup_ = 0;
  bool resolving_ = false, connecting_ = false;
  clock::time_point until_ = clock::time_point::max(), next_at_{};
  reason late_ = reason::none;
};

}  // namespace penstock::inline v0_1::detail::web

// ---- penstock/storage/web/web_head.hpp

namespace penstock::inline v0_1::detail::web {

/// Writes the header of a request. `by`: the proxy that is given the whole URL, null if there is none.
inline void write_head(std::string& out, const call& what, const http_proxy* by) {
  const auto method = boost::beast::http::to_string(what.method);
  out.assign(method.data(), method.size());
  append(out, {" ", by != nullptr ? what.where.text() : what.where.target(), " HTTP/1.1\r\n"});
  const std::size_t lines = out.size();
  append(out, {"Host: ", what.where.authority(), "\r\nUser-Agent: penstock/", version_major, ".",
               version_minor, ".", version_patch, "\r\nAccept-Encoding: identity\r\n"});
  if (what.has_range())
    append(out, {"Range: bytes=", what.offset, "-", what.offset + what.into.size() - 1, "\r\n"});
  if (!what.if_match.empty()) append(out, {"If-Match: ", what.if_match, "\r\n"});
  if (!what.body.empty() || what.method == verb::put || what.method == verb::post)
    append(out, {"Content-Length: ", what.body.size(), "\r\n"});
  for (const auto& [name, value] : what.headers) {
    constexpr std::string_view breaks("\r\n\0", 3);
    if (name.find_first_of(breaks) != std::string::npos || value.find_first_of(breaks) != std::string::npos)
      throw error(errc::argument, "a header of a request has a line break in its name or value");
    append(out, {name, ": ", value, "\r\n"});
  }
  if (by != nullptr && !by->authorization.empty())
    append(out, {"Proxy-Authorization: ", by->authorization, "\r\n"});
  if (what.sign != nullptr) {
    std::string with_signature = out.substr(lines);
    what.sign(what.signer, what, with_signature);
    out.replace(lines, std::string::npos, with_signature);
  }
  out += "\r\n";
}

}  // namespace penstock::inline v0_1::detail::web

// ---- penstock/storage/web/web_range.hpp

namespace penstock::inline v0_1::detail::web {

/// Whether a 200 says that it is a range: older gateways of AIStore send 200 where 206 is meant. All facts
/// must agree; a server that ignores ranges has no Content-Range to give.
inline bool is_range_by_200(const answer& reply) {
  if (reply.status != 200 || !reply.length) return false;
  const auto range = parse_content_range(reply.header("Content-Range"));
  return range && range->has_bytes && range->total && *reply.length == range->last - range->first + 1;
}

/// The total length of the object, as an answer to a request for a range gives it.
inline std::optional<std::uint64_t> total_length(const answer& reply) {
  if (reply.status == 200 && !is_range_by_200(reply)) return reply.length;
  const auto range = parse_content_range(reply.header("Content-Range"));
  return range ? range->total : std::nullopt;
}

/// Why the answer 200 or 206 to a request for a range does not hold exactly its bytes; nothing if it does.
inline std::optional<error> range_fault(const call& what) {
  const answer& reply = what.reply;
  const std::uint64_t wanted = what.into.size(), end = what.offset + wanted;
  const auto lie = [&](std::initializer_list<piece> message) {
    return what.with_facts(error(errc::io, message)).recurring();
  };
  const std::string_view encoding = reply.header("Content-Encoding");
  if (!encoding.empty() && encoding != "identity" && !what.stored_encoded)
    return lie({"the server sends the object encoded (Content-Encoding: ", encoding,
                "), so ranges of it mean nothing; store it without, or switch the encoding off"});
  if (reply.status == 200 && !is_range_by_200(reply)) {
    if (what.offset == 0 && reply.length == wanted) return std::nullopt;
    return lie(
        {"the server ignores ranges: it answered 200 with the whole object; switch ranges on at the server "
         "(nginx: max_ranges), or use another one"});
  }
  const std::string_view text = reply.header("Content-Range");
  const auto range = parse_content_range(text);
  if (!range || !range->has_bytes)
    return what.failure(
        {"the server answered 206 without a Content-Range that makes sense: \"", text.substr(0, 80), "\""});
  if (what.size != call::no_range && range->total && *range->total != what.size)
    return lie({"the object was replaced while it was read: it had ", what.size, " bytes, and has ",
                *range->total, "; start again with the new one"});
  if (range->first == what.offset && range->last + 1 < end && range->total == range->last + 1)
    return what.with_facts(error(
        errc::format,
        {"the range of ", wanted, " bytes goes beyond the end of the object, which has ", *range->total}));
  if (range->first != what.offset || range->last + 1 != end)
    return what.failure({"the server sent another range than was asked for: bytes ", range->first, " to ",
                         range->last, ", not ", what.offset, " to ", end - 1});
  if (reply.length && *reply.length != wanted)
    return what.failure({"the server contradicts itself: Content-Length is ", *reply.length,
                         " for a range of ", wanted, " bytes"});
  return std::nullopt;
}

}  // namespace penstock::inline v0_1::detail::web

// ---- penstock/storage/web/web_exchange.hpp

namespace penstock::inline v0_1::detail::web {

/// How a call ended for its connection.
enum class ending : std::uint8_t {
  reusable,  ///< the next call may use it
  closed,    ///< it may not
  stale,     ///< the server had closed it before; the call has not begun
};

/// One connection that does one call after another. The header of an answer is read into a small buffer; the
/// bytes of a range go from the socket to their place, but for those that came with the header.
class exchange : public transport<exchange> {
  friend transport<exchange>;
  using state = answer_reader::state;

 public:
  /// Is told when a call has ended; `self` outlives all connections.
  struct listener {
    void* self;
    void (*ended)(void* self, const std::shared_ptr<exchange>& by, call& what, std::exception_ptr failed,
                  ending how);
  };

  exchange(common& all, const url& origin, const http_proxy* proxy, listener told)
      : transport(all, origin, proxy), told_(told) {}

  void start(call& what) {
    call_ = &what;
    if (what.begun == clock::time_point{}) what.begun = clock::now();
    begun_ = what.begun;
    answered_at_ = clock::time_point::max();
    guard([&] { started_ ? send() : open(); });
  }
  /// Ends what has lasted too long, or brings too little.
  void check_time(clock::time_point now) {
    const http_options& limits = all_.options;
    if (now - begun_ >= longest_time()) return this->abandon(reason::too_long);
    if (answered_at_ <= now && now - window_at_ >= limits.throughput_window) {
      if (bytes_per_second(window_bytes_, now - window_at_) < static_cast<double>(limits.min_throughput))
        return this->abandon(reason::too_slow);
      window_at_ = now;
      window_bytes_ = 0;
    }
    transport::check_time(now);
  }
  /// Why the call has been waiting for longer than `warn_after`; "" if it has not, or its answer is coming.
  [[nodiscard]] std::string trouble(clock::time_point now) const {
    const http_options& limits = all_.options;
    if (now - begun_ < limits.warn_after + body_time()) return {};
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - begun_).count();
    if (!started_) return detail::text({"no connection for ", seconds, " s"});
    if (answered_at_ > now) return detail::text({"no answer for ", seconds, " s"});
    if (bytes_per_second(answer_bytes_, now - answered_at_) >= static_cast<double>(limits.min_throughput))
      return {};
    return detail::text({answer_bytes_, " bytes came in ", seconds, " s"});
  }
  [[nodiscard]] bool is_idle() const noexcept { return call_ == nullptr; }
  [[nodiscard]] const call* doing() const noexcept { return call_; }
  [[nodiscard]] clock::time_point idle_since() const noexcept { return idle_since_; }

 private:
  [[nodiscard]] const call& current() const noexcept { return *call_; }
  /// What a body on its way gets: a millisecond for 256 bytes.
  [[nodiscard]] std::chrono::milliseconds body_time() const {
    return std::chrono::milliseconds(call_->body.size() / 256);
  }
  /// `max_time`, and what the bytes get that go either way: a millisecond for 16 bytes of a range.
  [[nodiscard]] std::chrono::milliseconds longest_time() const {
    return all_.options.max_time + body_time() + std::chrono::milliseconds(call_->into.size() / 16);
  }
  [[nodiscard]] static double bytes_per_second(std::uint64_t bytes, clock::duration time) {
    return static_cast<double>(bytes) / std::max(1e-9, std::chrono::duration<double>(time).count());
  }
  void came(std::size_t bytes) noexcept {
    answer_bytes_ += bytes;
    window_bytes_ += bytes;
  }

  // ---- Sending

  void ask_for_tunnel() {
    in_tunnel_ = true;
    const std::string to =
        detail::text({origin_.host.find(':') == std::string::npos ? origin_.host : "[" + origin_.host + "]",
                      ":", origin_.port_number()});
    out_ = detail::text({"CONNECT ", to, " HTTP/1.1\r\nHost: ", to, "\r\n"});
    if (!proxy_->authorization.empty())
      detail::append(out_, {"Proxy-Authorization: ", proxy_->authorization, "\r\n"});
    out_ += "\r\n";
    begin_answer(true);
    write({net::buffer(out_), net::const_buffer()}, then(&exchange::sent));
  }
  void opened() {
    started_ = true;
    send();
  }
  void send() {
    head_until_ = clock::now() + all_.options.first_byte_time + body_time();
    wait_until(head_until_, reason::first_byte_late);
    write_head(out_, *call_, asks_proxy() ? proxy_ : nullptr);
    all_.counted.requests.fetch_add(1, std::memory_order_relaxed);
    begin_answer(call_->method == verb::head);
    if (call_->body.empty()) return write({net::buffer(out_), net::const_buffer()}, then(&exchange::sent));
    // A server may answer before it has the whole body, and read no more of it. So the answer is awaited at
    // once, and ends the call; that the body could not be written says nothing more.
    write({net::buffer(out_), net::buffer(call_->body)},
          [self = shared_from_this()](const error_code&, std::size_t) { self->written(); });
    writing_ = true;
    read_head();
  }
  void written() {
    writing_ = false;
    if (const auto over = std::exchange(answered_, std::nullopt)) end(over->first, over->second);
  }
  void sent(const error_code& code, std::size_t) {
    if (code) return failed(code);
    read_head();
  }

  // ---- The header of an answer

  void begin_answer(bool without_body) {
    call_->reply = {};
    got_byte_ = false;
    in_.begin(without_body);
  }
  void read_head() { read_some(in_.room(), then(&exchange::got_head)); }
  void got_head(const error_code& code, std::size_t size) {
    if (code) return failed(code);
    in_.arrived(size);
    if (!got_byte_ && in_.is_tls())
      return failed_with(call_->failure({"the server speaks TLS at this port; write https://"}).recurring());
    got_byte_ = true;
    const auto stalled = clock::now() + all_.options.progress_time;
    if (!in_tunnel_ && stalled < head_until_) wait_until(stalled, reason::progress_late);
    if (!in_tunnel_ && stalled >= head_until_) wait_until(head_until_, reason::first_byte_late);
    switch (in_.read_head()) {
      case state::more:
        return read_head();
      case state::malformed:
        return malformed();
      case state::overflowing:
      case state::too_long:
        return failed_with(call_->failure(
            {"the server sent a header of more than ", answer_reader::max_buffered, " bytes"}));
      case state::done:
        return in_tunnel_ ? tunnel_answered(in_.status()) : header_complete();
    }
  }
  void tunnel_answered(unsigned status) {
    in_tunnel_ = false;
    if (status / 100 != 2 || in_.waiting() != 0) {
      http_error made = answer_error(status);
      if (status != 407)
        return failed_with(call_
                               ->with_facts(error(errc::io, {"the proxy ", proxy_->where.authority(),
                                                             " opened no tunnel (", status, ")"}))
                               .recurring(!may_pass(status)));
      return failed_with(call_->with_facts(std::move(made)));
    }
    secure();
  }
  void header_complete() {
    answer& reply = call_->reply;
    answered_at_ = window_at_ = clock::now();
    answer_bytes_ = window_bytes_ = in_.waiting();
    wait_until(answered_at_ + all_.options.progress_time, reason::progress_late);
    keep_ = in_.keeps();
    const bool done = in_.is_done(), unknown = in_.take_head(reply);
    const unsigned status = reply.status;
    if (status == 429 || status == 503) all_.counted.slow_downs.fetch_add(1, std::memory_order_relaxed);
    const bool bytes = call_->has_range() && call_->method == verb::get && (status == 200 || status == 206);
    if (bytes) {
      if (const auto fault = range_fault(*call_)) return failed_with(*fault);
      if (!unknown) return read_range();
    }
    if (done) return complete();
    if (unknown) return read_unknown(bytes ? call_->into.size() : call_->max_body);
    if (*reply.length > call_->max_body) {
      reply.cut = true;
      keep_ = false;
      return complete();
    }
    reply.body.resize(to_size(*reply.length));
    in_range_ = false;
    place_ = std::as_writable_bytes(std::span(reply.body));
    read_place();
  }

  // ---- Bodies

  void read_range() {
    in_range_ = true;
    place_ = call_->into;
    read_place();
  }
  void range_complete() {
    all_.counted.bytes.fetch_add(call_->into.size(), std::memory_order_relaxed);
    complete();
  }
  void read_place() {
    place_ = place_.subspan(in_.take(place_));
    continue_place();
  }
  void continue_place() {
    if (place_.empty()) return in_range_ ? range_complete() : complete();
    read_some(net::buffer(place_.data(), place_.size()), then(&exchange::got_place));
  }
  void got_place(const error_code& code, std::size_t size) {
    if (code) return failed(code);
    place_ = place_.subspan(size);
    came(size);
    wait_until(clock::now() + all_.options.progress_time, reason::progress_late);
    continue_place();
  }

  /// A body in chunks, or up to the end of the connection.
  void read_unknown(std::size_t maximum) {
    in_.begin_body(maximum);
    parse_body();
  }
  void parse_body() {
    switch (in_.read_body()) {
      case state::more:
        return read_some(in_.room(), then(&exchange::got_body));
      case state::malformed:
        return malformed();
      case state::too_long:
        return too_long();
      case state::overflowing:
        return failed_with(call_->failure({"the server sent a chunk whose header is too long"}));
      case state::done:
        return unknown_complete();
    }
  }
  void got_body(const error_code& code, std::size_t size) {
    // Over TLS, only a range shows by its size whether somebody else has ended the connection.
    if (code == net::error::eof || (code == net::ssl::error::stream_truncated && call_->has_range())) {
      if (!in_.end_body()) return failed(code);
      keep_ = false;
      return unknown_complete();
    }
    if (code) return failed(code);
    in_.arrived(size);
    came(size);
    wait_until(clock::now() + all_.options.progress_time, reason::progress_late);
    parse_body();
  }
  void unknown_complete() {
    call_->reply.body = std::move(in_.body());
    const bool bytes = call_->has_range() && call_->method == verb::get && call_->reply.status / 100 == 2;
    if (bytes) {
      if (call_->reply.body.size() != call_->into.size()) return too_short(call_->reply.body.size());
      std::memcpy(call_->into.data(), call_->reply.body.data(), call_->into.size());
      all_.counted.bytes.fetch_add(call_->into.size(), std::memory_order_relaxed);
      call_->reply.body.clear();
    }
    complete();
  }
  void too_long() {
    if (call_->has_range() && call_->reply.status / 100 == 2)
      return failed_with(call_->failure({"the server sent more bytes than the range has"}));
    call_->reply.cut = true;
    keep_ = false;
    complete();
  }

  // ---- Ends

  void complete() {
    end(nullptr, keep_ && !writing_ && in_.waiting() == 0 ? ending::reusable : ending::closed);
  }
  void too_short(std::size_t got) {
    failed_with(call_->failure({"the connection ended after ", got, " of ", call_->into.size(), " bytes"}));
  }
  void malformed() {
    failed_with(call_->failure({"the server's answer is no HTTP/1.1: ", in_.fault().message()}));
  }
  template <class Error>
  void failed_with(const Error& made) {
    std::exception_ptr failure;
    {
      Error own(made);  // `made` is destroyed after the call has been told, perhaps beside its owner
      own.own_texts();
      failure = std::make_exception_ptr(std::move(own));
    }
    end(std::move(failure), ending::closed);
  }
  void broke(std::exception_ptr failure) {
    if (call_ != nullptr) end(std::move(failure), ending::closed);
  }
  void failed(const error_code& code);
  void end(std::exception_ptr failure, ending how) {
    if (how != ending::reusable) close();
    if (writing_) {  // that ends now, and until then the body is in use
      answered_.emplace(std::move(failure), how);
      return;
    }
    call& what = *std::exchange(call_, nullptr);
    served_ = true;
    idle_since_ = clock::now();
    wait_until(clock::time_point::max(), reason::none);
    told_.ended(told_.self, shared_from_this(), what, std::move(failure), how);
  }

  listener told_;
  call* call_ = nullptr;
  clock::time_point idle_since_{}, begun_{}, head_until_{};
  clock::time_point answered_at_ = clock::time_point::max(), window_at_{};  // the header was complete
  std::uint64_t answer_bytes_ = 0, window_bytes_ = 0;
  bool started_ = false, served_ = false, in_tunnel_ = false, got_byte_ = false, keep_ = false;
  bool writing_ = false;                                           // a body, while the answer is awaited
  std::optional<std::pair<std::exception_ptr, ending>> answered_;  // before the body was written
  bool in_range_ = false;                                          // the body goes to the range's place
  std::string out_;
  answer_reader in_;
  mutable_bytes place_;
};

inline void exchange::failed(const error_code& code) {
  switch (why_) {
    case reason::stopped:
      return end(cancelled(*call_), ending::closed);
    case reason::connect_late:
      return failed_with(call_
                             ->failure({"no connection within ", all_.options.connect_time.count(),
                                        " ms; check host and port, and whether a firewall is between"})
                             .after_time_out()
                             .without_connection());
    case reason::first_byte_late:
      return failed_with(call_->failure({"no answer within ", all_.options.first_byte_time.count(), " ms"})
                             .after_time_out());
    case reason::progress_late:
      return failed_with(
          call_->failure({"the answer stalled: no byte within ", all_.options.progress_time.count(), " ms"})
              .after_time_out());
    case reason::too_slow:
      return failed_with(call_
                             ->failure({window_bytes_, " bytes of the answer came in ",
                                        all_.options.throughput_window.count(),
                                        " ms, fewer than http_options::min_throughput asks for (",
                                        all_.options.min_throughput, " bytes/s)"})
                             .after_time_out());
    case reason::too_long:
      return failed_with(call_
                             ->failure({"the request was not over after ", longest_time().count(),
                                        " ms; see http_options::max_time"})
                             .after_time_out());
    case reason::none:
      break;
  }
  const bool ended = code == net::error::eof || code == net::error::connection_reset ||
                     code == net::error::broken_pipe || code == net::error::connection_aborted ||
                     code == net::ssl::error::stream_truncated;
  if (ended && served_ && !got_byte_ && !call_->replaced && call_->method != verb::post) {
    call_->replaced = true;
    return end(nullptr, ending::stale);
  }
  if (in_tunnel_)
    return failed_with(
        call_->failure({"the proxy ", proxy_->where.authority(), " ended the connection: ", code.message()}));
  if (!started_) {
    const url& to = proxy_ != nullptr ? proxy_->where : origin_;
    if (code == net::error::host_not_found)  // a name server that does not answer says another thing
      return failed_with(call_
                             ->failure({"there is no host ", to.host, "; check the ",
                                        proxy_ != nullptr ? "proxy that the environment names" : "URL"})
                             .recurring());
    return failed_with(
        call_
            ->failure({proxy_ != nullptr ? "cannot connect to the proxy " : "cannot connect to ",
                       to.authority(), ": ", code.message()})
            .without_connection());
  }
  if (!ended) return failed_with(call_->failure({"the connection failed: ", code.message()}));
  if (!got_byte_) return failed_with(call_->failure({"the server ended the connection without an answer"}));
  if (call_->reply.status == 0 || !call_->has_range())
    return failed_with(call_->failure({"the server ended the connection within its answer"}));
  const unsigned status = call_->reply.status;
  if (status != 200 && status != 206)
    return failed_with(call_->with_facts(answer_error(status, call_->reply.retry_after())));
  too_short(in_.has_body() ? in_.body().size()
                           : call_->into.size() - std::min(place_.size(), call_->into.size()));
}

}  // namespace penstock::inline v0_1::detail::web

// ---- penstock/storage/web/web_client.hpp

namespace penstock::inline v0_1::detail::web {

/// Performs calls: one thread, started by the first of them, and a bounded number of connections that are
/// kept open. Calls begin in the order in which they were given.
///
/// Threads: any number may call `submit`, `perform` and `cancel`. Destruction cancels and joins; it waits for
/// a look-up of a name that is in progress.
class client {
  static constexpr std::size_t max_redirects = 5;
  /// The calls with a tag, up to a number.
  struct named_calls {
    std::uint64_t tag, up_to;
  };

 public:
  explicit client(const http_options& options)
      : all_(options),
        proxies_(options.proxies ? http_proxies::of_environment() : http_proxies()),
        work_(all_.io.get_executor()),
        tick_(all_.io) {
    if (options.stop.stop_possible()) stops_.emplace(options.stop, refusing{this});
  }
  client(const client&) = delete;
  client& operator=(const client&) = delete;
  ~client() {
    stops_.reset();
    if (!thread_.joinable()) return;
    {
      const std::scoped_lock lock(mutex_);
      ends_ = true;
    }
    cancel();
    {
      std::unique_lock lock(mutex_);
      all_told_.wait(lock, [&] { return open_calls_ == 0; });
    }
    all_.io.stop();
    thread_.join();
  }

  /// Takes all calls, or none and throws; after `refuse`, none.
  void submit(std::span<call* const> calls) {
    const std::scoped_lock lock(mutex_);
    if (refuses_) throw error(errc::stopped, "the read was cancelled");
    inbox_.reserve(inbox_.size() + calls.size());
    if (!thread_.joinable()) thread_ = std::thread([this]() noexcept { all_.io.run(); });
    if (!posted_) net::post(all_.io, [this] { take_new(); });
    posted_ = true;
    for (call* const one : calls) {
      one->number = ++numbered_;
      inbox_.push_back(one);
    }
    open_calls_ += calls.size();
  }

  /// Performs one call and waits for its end; throws if there is no answer. Not from the client's thread.
  void perform(call& what) {
    struct waiting {
      std::mutex mutex;
      std::condition_variable changed;
      bool over = false;
      std::exception_ptr failed;
    } state;
    what.self = &state;
    what.done = [](void* self, call&, std::exception_ptr failed) noexcept {
      auto& waits = *static_cast<waiting*>(self);
      const std::scoped_lock lock(waits.mutex);
      waits.failed = std::move(failed);
      waits.over = true;
      waits.changed.notify_one();
    };
    call* const only = &what;
    submit({&only, 1});
    std::unique_lock lock(state.mutex);
    state.changed.wait(lock, [&] { return state.over; });
    if (state.failed) std::rethrow_exception(state.failed);
  }

  /// Ends all calls that were submitted before: they end with errc::stopped, unless they just have.
  void cancel() noexcept {
    try {
      const std::scoped_lock lock(mutex_);
      if (open_calls_ == 0) return;
      cancel_up_to_ = numbered_;
      net::post(all_.io, [this] { take_new(); });
    } catch (...) {  // no memory: the next tick does it
    }
  }

  /// Ends the calls with that tag that were submitted before, as `cancel` ends all of them.
  void abandon(std::uint64_t tag) noexcept {
    try {
      const std::scoped_lock lock(mutex_);
      if (open_calls_ == 0) return;
      abandoned_.push_back({tag, numbered_});
      net::post(all_.io, [this] { take_new(); });
    } catch (...) {  // no memory: the next tick does it, or the calls run to their ends
    }
  }

  /// Ends all calls, and takes no more.
  void refuse() noexcept {
    {
      const std::scoped_lock lock(mutex_);
      refuses_ = true;
    }
    cancel();
  }

  /// Throws errc::argument if the environment names a proxy for that URL that cannot be used.
  void check_proxy(const url& where) const { (void)proxies_.of(where); }
  [[nodiscard]] const counts& counted() const noexcept { return all_.counted; }

 private:
  // ---- All of this belongs to the thread.

  void take_new() {
    std::uint64_t cancelled = 0;
    std::vector<named_calls> abandoned;
    {
      const std::scoped_lock lock(mutex_);
      queue_.insert(queue_.end(), inbox_.begin(), inbox_.end());
      inbox_.clear();
      posted_ = false;
      cancelled = std::exchange(cancel_up_to_, 0);
      abandoned.swap(abandoned_);
    }
    if (cancelled != 0) {
      cancelled_ = std::max(cancelled_, cancelled);
      stop([&](const call& one) { return one.number <= cancelled; });
    }
    if (!abandoned.empty())
      stop([&](const call& one) {
        return std::any_of(abandoned.begin(), abandoned.end(), [&](const named_calls& each) {
          return one.tag == each.tag && one.number <= each.up_to;
        });
      });
    begin_calls();
  }

  template <class Which>
  void stop(Which which) {
    const auto kept =
        std::stable_partition(queue_.begin(), queue_.end(), [&](const call* one) { return !which(*one); });
    const std::vector<call*> waiting(kept, queue_.end());
    queue_.erase(kept, queue_.end());
    for (const auto& one : connections_)
      if (const call* const doing = one->doing(); doing != nullptr && which(*doing))
        one->abandon(exchange::reason::stopped);
    for (call* const one : waiting) tell(*one, cancelled(*one));
  }

  void begin_calls() {
    while (!queue_.empty() && active_ < all_.options.connections) {
      call& next = *queue_.front();
      queue_.pop_front();
      begin(next, true);
    }
    if ((active_ == 0 && !fails()) || ticking_) return;
    try {
      tick();
    } catch (...) {  // no memory: the next call begins it
      ticking_ = false;
    }
  }
  /// Begins a call on a connection that is idle, if it may, or on a new one.
  void begin(call& next, bool reuse) {
    std::exception_ptr failed;
    try {
      const auto by = reuse ? idle_for(next.where) : nullptr;
      const auto connection = by ? by : connect(next.where);
      ++active_;
      last_begun_ = clock::now();
      connection->start(next);
      return;
    } catch (...) {
      failed = std::current_exception();
    }
    tell(next, std::move(failed));
  }
  /// The connection that was used last, so that the others grow old.
  std::shared_ptr<exchange> idle_for(const url& where) {
    const auto now = clock::now();
    const http_proxy* const proxy = proxies_.of(where);
    std::erase_if(connections_, [&](const auto& one) {
      return one->is_idle() && one->serves(where, proxy) && one->has_spoken();
    });
    std::shared_ptr<exchange> best;
    for (const auto& one : connections_)
      if (one->is_idle() && one->serves(where, proxy) && now - one->idle_since() < all_.options.idle_time &&
          (!best || one->idle_since() > best->idle_since()))
        best = one;
    return best;
  }
  std::shared_ptr<exchange> connect(const url& where) {
    if (connections_.size() >= all_.options.connections) {
      const auto oldest =
          std::min_element(connections_.begin(), connections_.end(), [](const auto& a, const auto& b) {
            if (a->is_idle() != b->is_idle()) return a->is_idle();
            return a->idle_since() < b->idle_since();
          });
      if ((*oldest)->is_idle()) {
        (*oldest)->close();
        connections_.erase(oldest);
      }
    }
    connections_.push_back(std::make_shared<exchange>(
        all_, where, proxies_.of(where),
        exchange::listener{
            this, [](void* self, const std::shared_ptr<exchange>& by, call& what, std::exception_ptr failed,
                     ending how) { static_cast<client*>(self)->ended(by, what, std::move(failed), how); }}));
    return connections_.back();
  }

  void ended(const std::shared_ptr<exchange>& by, call& what, std::exception_ptr failed,
             ending how) noexcept {
    --active_;
    if (how != ending::reusable) std::erase(connections_, by);
    if (how != ending::stale) note_outcome(what, failed);
    try {
      if (how == ending::stale && what.number > cancelled_) {
        begin(what, false);
        return begin_calls();
      }
      const bool again = how == ending::stale || (!failed && redirects(what));
      if (again && what.number > cancelled_) {
        queue_.push_front(&what);
        return begin_calls();
      }
      if (again) failed = cancelled(what);
      if (what.number > cancelled_ || !queue_.empty()) begin_calls();
    } catch (...) {
      failed = std::current_exception();
    }
    tell(what, std::move(failed));
  }

  /// Whether an answer leads to another URL, which is the call's now. Throws if it may not.
  bool redirects(call& what) {
    const unsigned status = what.reply.status;
    if (!what.follow_redirects || status / 100 != 3 || status == 300 || (status > 303 && status < 307) ||
        status > 308)
      return false;
    const std::string location(what.reply.header("Location"));
    if (location.empty()) return false;
    const auto refuse = [&](std::initializer_list<piece> why) { return what.failure(why).recurring(); };
    url to;
    try {
      to = resolve(what.where, location);
    } catch (const error& e) {
      throw refuse({"the server redirects to what cannot be followed: ", e.message()}).recurring();
    }
    if (to.scheme != "http" && to.scheme != "https")
      throw refuse({"the server redirects to the scheme ", to.scheme, ", which is not followed"});
    if (what.where.scheme == "https" && to.scheme == "http")
      throw refuse({"the server redirects from https to http, to ", to.without_secrets(),
                    "; that would give up the protection of TLS, so it is refused"});
    what.been.push_back(what.where);
    if (std::find(what.been.begin(), what.been.end(), to) != what.been.end())
      throw refuse({"the server redirects in a circle, back to ", to.without_secrets()});
    if (what.been.size() > max_redirects)
      throw refuse(
          {"the server redirects more than ", max_redirects, " times; use the URL that it leads to"});
    if (!to.same_origin(what.where))
      std::erase_if(what.headers,
                    [&](const call::header& one) { return what.headers_stay || is_secret(one.first); });
    if (status == 303 && what.method != verb::head) {
      what.method = verb::get;
      what.body.clear();
    }
    what.where = std::move(to);
    what.replaced = false;  // another request
    return true;
  }
  /// Whether a header is for the host that was asked first alone.
  static bool is_secret(std::string_view name) {
    std::string lower(name);
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
    return lower == "authorization" || lower == "cookie" || lower.starts_with("x-amz-") ||
           lower.starts_with("x-goog-");
  }

  // ---- What a person is told

  /// Whether no good answer has come since a failure that may pass, which nobody was told of yet.
  [[nodiscard]] bool fails() const noexcept { return failing_since_ && may_warn(clock::now()); }
  /// Whether somebody may still wait: a read that is given up is not told of here.
  [[nodiscard]] bool may_warn(clock::time_point now) const noexcept {
    const auto& retries = all_.options.retries;
    if (all_.options.warn_after.count() == 0 || now < quiet_until_) return false;
    return active_ != 0 ||
           (retries.attempts > 1 && now - last_begun_ <= retries.max_backoff + retries.max_retry_after);
  }
  void note_outcome(const call& what, const std::exception_ptr& failed) noexcept {
    try {
      std::string why;
      if (failed) {
        try {
          std::rethrow_exception(failed);
        } catch (const error& e) {
          if (e.recurs()) return;  // stopped, or what no wait would mend
          why = e.message();
        }
      } else if (may_pass(what.reply.status)) {
        why = answer_error(what.reply.status, what.reply.retry_after()).message();
      } else {
        failing_since_.reset();
        return;
      }
      if (!failing_since_) failing_since_ = clock::now();
      failure_ = detail::text({what.shown(), ": ", why});
    } catch (...) {  // no memory: nobody is told
    }
  }
  void warn(clock::time_point now) {
    if (!may_warn(now)) return;
    std::string line;
    if (failing_since_ && now - *failing_since_ >= all_.options.warn_after)
      line = detail::text({"no good answer for ",
                           std::chrono::duration_cast<std::chrono::seconds>(now - *failing_since_).count(),
                           " s from ", failure_});
    for (std::size_t i = 0; line.empty() && i < connections_.size(); ++i)
      if (const call* const doing = connections_[i]->doing(); doing != nullptr) {
        const std::string why = connections_[i]->trouble(now);
        if (!why.empty()) line = detail::text({"waiting for ", doing->shown(), ": ", why});
      }
    if (line.empty()) return;
    quiet_until_ = now + std::chrono::minutes(1);
    std::fprintf(stderr, "penstock: %s\n", line.c_str());
  }

  void tell(call& what, std::exception_ptr failed) noexcept {
    what.done(what.self, what, std::move(failed));  // the call may be gone now
    const std::scoped_lock lock(mutex_);
    if (--open_calls_ == 0 && ends_) all_told_.notify_one();
  }

  /// Looks for what has lasted too long; the thread sleeps while nothing is in progress.
  void tick() {
    ticking_ = true;
    const auto least =
        std::min({all_.options.connect_time, all_.options.first_byte_time, all_.options.progress_time,
                  all_.options.throughput_window, all_.options.max_time});
    tick_.expires_after(std::clamp<std::chrono::milliseconds>(least / 8, std::chrono::milliseconds(1),
                                                              std::chrono::milliseconds(250)));
    tick_.async_wait([this](const error_code& code) {
      ticking_ = false;
      if (code) return;
      const auto now = clock::now();
      for (std::size_t i = 0; i < connections_.size(); ++i) {
        const auto one = connections_[i];  // what is late may leave the list
        if (!one->is_idle()) one->check_time(now);
      }
      warn(now);
      take_new();
    });
  }

  struct refusing {
    client* all;
    void operator()() const noexcept { all->refuse(); }
  };

  common all_;
  http_proxies proxies_;
  net::executor_work_guard<net::io_context::executor_type> work_;
  net::steady_timer tick_;
  std::deque<call*> queue_;
  std::vector<std::shared_ptr<exchange>> connections_;
  std::size_t active_ = 0;
  std::uint64_t cancelled_ = 0;
  bool ticking_ = false;
  clock::time_point last_begun_{}, quiet_until_{};
  std::optional<clock::time_point> failing_since_;
  std::string failure_;

  std::mutex mutex_;
  std::condition_variable all_told_;
  std::vector<call*> inbox_;
  std::vector<named_calls> abandoned_;
  std::uint64_t numbered_ = 0, cancel_up_to_ = 0;
  std::size_t open_calls_ = 0;
  bool posted_ = false, ends_ = false, refuses_ = false;
  std::thread thread_;
  std::optional<std::stop_callback<refusing>> stops_;
};

}  // namespace penstock::inline v0_1::detail::web

// ---- penstock/storage/web/web_objects.hpp

namespace penstock::inline v0_1::detail::web {

/// The objects of a storage: what errors call them, and where they are.
struct object_list {
  std::vector<std::string> names;  // without queries
  std::vector<url> urls;
  std::string pattern;
};

/// Reads ranges of objects through a client. What the first answer tells of an object, its size and its tag,
/// holds for the session: a later answer that differs is an error.
class objects {
  struct facts {
    std::uint64_t size = 0;
    std::string tag, modified, if_match;
    [[nodiscard]] std::uint64_t stamp() const {
      return tag.empty() && modified.empty() ? 0 : fingerprint().add(tag.empty() ? modified : tag).value();
    }
  };
  struct reading : call {
    objects* owner = nullptr;
    read_request request;
    read_listener listener;
    std::byte one_byte{};
  };

 public:
  objects(shared<const object_list> list, const http_options& options)
      : list_(std::move(list)),
        answers_(list_->names.size()),
        connections_(options.connections),
        headers_(options.headers),
        client_(std::in_place, options) {
    for (const url& one : list_->urls) client_->check_proxy(one);
  }
  objects(const objects&) = delete;
  objects& operator=(const objects&) = delete;
  ~objects() {
    client_.reset();  // its thread ends before what it uses
    for (std::size_t i = 0; i < list_->names.size(); ++i) delete answers_[i].load(std::memory_order_relaxed);
  }

  [[nodiscard]] object_version version(object_id id) {
    const facts& found = find(id);
    return {found.size, found.stamp()};
  }
  /// Whether equal versions mean equal bytes: what the object's ETag says, if it has one.
  [[nodiscard]] bool tagged(object_id id) const {
    const facts* const there = id < list_->urls.size() ? known(id) : nullptr;
    return there != nullptr && !there->tag.empty() && !is_of_time(there->tag, there->size);
  }
  void read(object_id id, std::uint64_t offset, mutable_bytes into) {
    reading one;
    if (!prepare(one, {id, offset, into})) return;
    client_->perform(one);
    finish(one);
  }
  void read_many(std::span<const read_request> requests, read_listener listener) noexcept {
    std::vector<call*> begun;
    for (const read_request& request : requests) {
      std::exception_ptr failed;
      try {
        begun.reserve(requests.size());
        auto one = std::make_unique<reading>();
        if (prepare(*one, request)) {
          one->listener = listener;
          one->owner = this;
          one->tag = request.tag;
          one->self = one.get();
          one->done = read_done;
          begun.push_back(one.release());
          continue;
        }
      } catch (...) {
        failed = std::current_exception();
      }
      listener.done(listener.self, request.tag, std::move(failed));
    }
    std::exception_ptr failed;
    try {
      if (!begun.empty()) client_->submit(begun);
    } catch (...) {
      failed = std::current_exception();
    }
    if (failed)
      for (call* const one : begun) read_done(static_cast<reading*>(one), *one, failed);
  }
  void cancel() noexcept {
    flight_.cancel();
    client_->cancel();
  }
  /// Ends the reads of `read_many` with that tag.
  void abandon(std::uint64_t tag) noexcept { client_->abandon(tag); }
  void end_reads() noexcept {
    flight_.cancel();
    client_->refuse();
  }
  [[nodiscard]] const counts& counted() const noexcept { return client_->counted(); }
  [[nodiscard]] std::size_t connections() const noexcept { return connections_; }

 private:
  [[nodiscard]] const facts* known(object_id id) const noexcept {
    return answers_[id].load(std::memory_order_acquire);
  }
  void address(call& what, object_id id) const {
    if (id >= list_->urls.size()) throw error(errc::argument, {"there is no object ", id});
    what.where = list_->urls[id];
    what.name = list_->names[id];
    what.headers = headers_;
    what.headers_stay = true;
  }

  /// Makes the request for a range; false if there is nothing to read. Throws for a range that is beyond the
  /// end of an object whose size is known.
  bool prepare(reading& one, const read_request& request) const {
    one.request = request;
    address(one, request.object);
    const std::uint64_t size = request.into.size();
    const facts* const there = known(request.object);
    const bool overflows = size > std::numeric_limits<std::uint64_t>::max() - request.offset;
    if (overflows || (there != nullptr && request.offset + size > there->size))
      throw beyond_end(one, there != nullptr ? std::optional(there->size) : std::nullopt);
    if (size == 0 && (request.offset == 0 || there != nullptr)) return false;
    // That an empty range is inside the object shows by the byte before it.
    one.offset = size == 0 ? request.offset - 1 : request.offset;
    one.into = size == 0 ? mutable_bytes(&one.one_byte, 1) : request.into;
    if (there != nullptr) {
      one.if_match = there->if_match;
      one.size = there->size;
    }
    return true;
  }
  [[nodiscard]] static error beyond_end(const reading& one, std::optional<std::uint64_t> size) {
    std::string line =
        text({"the range of ", one.request.into.size(), " bytes goes beyond the end of the object"});
    if (size) append(line, {", which has ", *size});
    return error(errc::format, line).in_file(one.name).at_offset(one.request.offset);
  }

  static void read_done(void* self, call&, std::exception_ptr failed) noexcept {
    const std::unique_ptr<reading> one(static_cast<reading*>(self));
    if (!failed) {
      try {
        one->owner->finish(*one);
      } catch (...) {
        failed = std::current_exception();
      }
    }
    one->listener.done(one->listener.self, one->request.tag, std::move(failed));
  }
  /// Throws unless the answer was the range.
  void finish(reading& one) {
    const answer& reply = one.reply;
    if (reply.status == 200 || reply.status == 206) {
      const auto total = total_length(reply);
      const facts* const there = known(one.request.object);
      if (!total && there == nullptr)
        throw one.with_facts(error(errc::io, "the server does not tell how long the object is")).recurring();
      pin(one, one.request.object, total ? *total : there->size);
      return;
    }
    if (reply.status == 416) {
      const auto range = parse_content_range(reply.header("Content-Range"));
      if (range && range->total && known(one.request.object) != nullptr)
        pin(one, one.request.object, *range->total);
      if (range && range->total && one.offset + one.into.size() > *range->total)
        throw beyond_end(one, range->total);
    }
    throw one.with_facts(answer_error(reply.status, reply.retry_after()));
  }

  /// Notes what an answer tells of an object, or compares it with what is known.
  const facts& pin(const call& what, object_id id, std::uint64_t size) {
    auto fresh = std::make_unique<facts>();
    fresh->size = size;
    const std::string_view tag = what.reply.header("ETag");
    const bool weak = tag.starts_with("W/");
    fresh->tag = weak ? tag.substr(2) : tag;
    if (fresh->tag == "\"\"") fresh->tag.clear();  // says nothing
    fresh->modified = what.reply.header("Last-Modified");
    if (tag.size() > 2 && tag.starts_with('"') && tag.ends_with('"')) fresh->if_match = fresh->tag;
    const facts* there = nullptr;
    if (answers_[id].compare_exchange_strong(there, fresh.get(), std::memory_order_acq_rel))
      return *fresh.release();
    const bool tags = !there->tag.empty() && !fresh->tag.empty();
    const bool dates = (!tags || weak) && !there->modified.empty() && !fresh->modified.empty();
    if (there->size == size && (!tags || there->tag == fresh->tag) &&
        (!dates || there->modified == fresh->modified))
      return *there;
    std::string line = "the object was replaced while it was read";
    if (there->size != size) append(line, {": it had ", there->size, " bytes, and has ", size});
    throw what.with_facts(error(errc::io, line + "; start again with the new one")).recurring();
  }

  const facts& find(object_id id) {
    if (id >= list_->urls.size()) throw error(errc::argument, {"there is no object ", id});
    if (known(id) == nullptr)
      flight_.ask(id, [&] {
        if (known(id) == nullptr) (void)find_by_head(id);
      });
    return *known(id);
  }
  const facts& find_by_head(object_id id) {
    call head;
    head.method = verb::head;
    address(head, id);
    client_->perform(head);
    const answer& reply = head.reply;
    if (reply.status == 200 && reply.length && !is_encoded(reply)) return pin(head, id, *reply.length);
    // Signed URLs are for one method, and some servers know no HEAD.
    if (reply.status == 200 || reply.status == 400 || reply.status == 403 || reply.status == 405 ||
        reply.status == 501)
      return find_by_range(id);
    throw head.with_facts(answer_error(reply.status, reply.retry_after()));
  }
  const facts& find_by_range(object_id id) {
    std::byte first{};
    call get;
    address(get, id);
    get.offset = 0;
    get.into = {&first, 1};
    const answer& reply = get.reply;
    try {
      client_->perform(get);
    } catch (const error&) {
      // The server ignores ranges, but it has said how long the object is.
      if (reply.status == 200 && reply.length && !is_encoded(reply))
        return pin(get, id, *total_length(reply));
      throw;
    }
    const auto range = parse_content_range(reply.header("Content-Range"));
    if (reply.status == 416 && range && range->total == 0u) return pin(get, id, 0);
    if (reply.status != 200 && reply.status != 206)
      throw get.with_facts(answer_error(reply.status, reply.retry_after()));
    const auto total = total_length(reply);
    if (!total)
      throw get.with_facts(error(errc::io, "the server does not tell how long the object is")).recurring();
    return pin(get, id, *total);
  }
  [[nodiscard]] static bool is_encoded(const answer& reply) {
    const std::string_view encoding = reply.header("Content-Encoding");
    return !encoding.empty() && encoding != "identity";
  }

  shared<const object_list> list_;
  fixed_array<std::atomic<const facts*>> answers_;
  single_flight flight_;
  std::size_t connections_;
  std::vector<call::header> headers_;
  std::optional<client> client_;
};

}  // namespace penstock::inline v0_1::detail::web

// ---- penstock/storage/web/plain_http.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// What `http` reads through: one request per read, and no second attempt after a failure.
class plain_http {
 public:
  class session {
   public:
    static constexpr bool views = false;
    static constexpr bool has_latency = true;

    [[nodiscard]] std::uint64_t size(object_id id) const { return version(id).size; }
    /// The object's size, and a hash of its ETag, or of Last-Modified without one. Asked for once.
    [[nodiscard]] object_version version(object_id id) const { return objects_->version(id); }
    /// See `tagging_session`: not for ETags that a server makes of the time and the size, as nginx and Apache
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
    void will_need(object_id, std::uint64_t, std::uint64_t) const noexcept {}

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

static_assert(storage<plain_http> && abandoning_session<plain_http::session> &&
                  latent_session<plain_http::session> && reports<plain_http::session>,
              "plain_http is a storage that reads in the background");

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/storage/http.hpp

namespace penstock::inline v0_1 {

/// Storage of objects on servers of HTTP and HTTPS: a URL, a pattern, or a list of URLs.
///
///     const http shards("https://data.example.com/train-{0000..0127}.tar");
///     const http two({"http://a.example/0.tar", "http://b.example/0.tar?version=3"});
///     const http at_home("https://10.0.0.7/train-{0..9}.tar", {.connections = 64, .ca_file = "my_ca.pem"});
///     const http hasty("http://10.0.0.7/0.tar", {.retries = {.attempts = 2}, .hedges = {.max_extra_requests = 0}});
///
/// In: URLs as `parse_url` takes them. Braces of a pattern, up to its query, are expanded by `expand_braces`;
/// URLs of a list are taken as they are. Nothing is opened before `connect`, and no request sent before the
/// first use.
/// A session reads each range by one GET. One thread, started by the first request, has up to `connections`
/// of them in flight, on connections that are kept open, and starts them in the order in which they were
/// given; `read`
/// waits for it. The bytes go from the socket straight to their place, but for those of second requests.
/// Size and ETag of an object are asked for at its first use, or come with its first range. From then on the
/// session insists on this object: each request carries `If-Match` if the ETag is a strong one, and an object
/// that was replaced is an error, never a mixture. Without a strong ETag, size, weak ETag and Last-Modified
/// are compared, as far as the server gives them. Servers behind one name must give one ETag.
/// HTTPS is TLS 1.2 or newer, and the server must prove to be the host. Redirects are followed up to five
/// times, but never from https to http. Proxies are those of the environment, as for curl; https goes through
/// them by CONNECT.
/// A host with several addresses, IPv6 or IPv4, is tried at each.
/// Secrets: `names`, errors and descriptions show a URL's query as `?...`. A user or password in a URL is
/// refused.
/// Errors: errc::io, with URL, offset and what to do. They recur (see `error::recurs`) if the server says so:
/// 404, 403, 401, 410, 412 (replaced), ranges that are ignored or encoded, a certificate that is refused,
/// redirects that are refused, https to a port that does not speak TLS. They do not for broken connections,
/// for what lasted longer than `connect_time`, `first_byte_time`, `progress_time` or `max_time`, for answers
/// slower than `min_throughput`, and for 408, 429 and 5xx; `http_error` has the
/// status, and answers 429 and 503 have what Retry-After asks for (see `error::retry_after_ms`).
/// errc::format for a range beyond the end, errc::argument for URLs and options that make no sense.
/// Failures that may pass are retried, as by `retrying`: by default up to ten attempts within about half a
/// minute, and within 15 s while no connection can be made. No more requests are in flight than the server
/// can handle, as by `throttled`. A read that is late gets a second request on another connection, as by
/// `hedged`. The options `retries`, `throttle` and `hedges` set them, or switch them off:
/// `{.retries = {.attempts = 1}, .throttle = {.max_in_flight = 0}, .hedges = {.max_extra_requests = 0}}`.
/// After `warn_after` (5 s) without a good answer, a line on the standard error stream says what is waited
/// for. A stop token in the options ends all of it, also while a plan is made.
/// A kept connection that the server had closed before the request is replaced in any case.
/// Threads: any number of threads may use a session. `cancel` ends all requests in flight at once. Destroying
/// the session does so too, and waits for the look-up of a host's name if one is in progress. A child after
/// `fork` must neither use nor destroy a session.
/// Cost: a request is about ten small allocations in the session's thread, none in the caller's memory.
/// Source: RFC 9110 and 9112.
class http {
 public:
  static constexpr std::string_view schemes[] = {"http", "https"};

  /// What a run reads through; see `background_session` and `latent_session`.
  class session : public detail::retried_session<detail::plain_http> {
   public:
    /// Connections opened so far.
    [[nodiscard]] std::uint64_t connections() const noexcept { return inside().connections(); }

   private:
    friend http;
    session(const detail::plain_http& where, const detail::retry_policy& policy)
        : retried_session(where, policy) {}
  };

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
  /// See `sidecar_storage`; queries stay as they are.
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
    auto list = std::make_unique<detail::web::object_list>();
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

  shared<const detail::web::object_list> list_;
  http_options options_;
};

static_assert(sidecar_storage<http> && background_session<http::session> && latent_session<http::session> &&
                  reports<http::session>,
              "http is a storage that reads in the background");

}  // namespace penstock::inline v0_1
