// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/owned.hpp>
#include <penstock/storage/http_options.hpp>
#include <penstock/storage/reads/request_recorder.hpp>
#include <penstock/storage/web/http_proxies.hpp>
#include <penstock/storage/web/web_call.hpp>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/sslerr.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <memory>

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

using clock = std::chrono::steady_clock;

/// What a client has counted.
struct counts {
  std::atomic<std::uint64_t> requests{0}, connections{0}, slow_downs{0};
  request_recorder ended;
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
class transport : public std::enable_shared_from_this<Self>, unmovable {
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
    if (std::exception_ptr failed = thrown_by(step)) self().broke(std::move(failed));
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
