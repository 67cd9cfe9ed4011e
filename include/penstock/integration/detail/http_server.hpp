// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<asio/version.hpp>)
#error "penstock/integration/detail/http_server.hpp needs standalone Asio: link penstock::asio"
#endif

#include <penstock/core/error.hpp>
#include <penstock/integration/detail/callback.hpp>
#include <penstock/integration/detail/http_request.hpp>
#include <penstock/run/engine/workers/thread.hpp>

#include <asio/error.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/address.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <asio/write.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <list>
#include <memory>
#include <random>
#include <system_error>

namespace penstock::inline v0_1::detail {

struct http_answer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body = {};
  std::string headers = {};  ///< further ones, each with its "\r\n"
};

struct http_server_options {
  std::uint16_t port = 0;  ///< 0: any that is free
  std::string address = "127.0.0.1";
  std::string token = {};  ///< if given, every request must have it, as ?token= or Authorization: Bearer
  /// for a request to arrive, and again for its answer to be taken; slower clients are cut off
  std::chrono::milliseconds deadline = std::chrono::seconds(10);
  /// at once; one more ends the oldest that waits for a request, or else the oldest, so that whoever holds
  /// connections keeps nobody out
  std::size_t connections = 64;
};

inline constexpr int token_digits = 32;
/// 128 random bits, as hexadecimal digits: a token.
[[nodiscard]] inline std::string random_token() {
  std::random_device entropy;
  std::string made;
  for (int i = 0; i < token_digits; ++i) made.push_back("0123456789abcdef"[entropy() % 16]);
  return made;
}

/// A connection of `http_server`. All of it happens in the server's thread.
class http_connection : public std::enable_shared_from_this<http_connection> {
 public:
  /// Gets the server's context, too: for work that waits for something.
  using handler = callback<const http_request&, callback<http_answer>, ::asio::io_context&>;
  /// What the connections of a server have in common.
  struct rules {
    http_server_options options;
    handler handle;
    bool any_host = false;  ///< for any name in the request's Host
  };

  http_connection(::asio::ip::tcp::socket socket, const rules& common)
      : socket_(std::move(socket)), timer_(socket_.get_executor()), common_(common) {}

  void wait_for_request() {
    waits_ = true;
    limit_time();
    read_more();
  }
  /// Whether it is closed, and whether it waits for a request.
  [[nodiscard]] bool ended() const noexcept { return !socket_.is_open(); }
  [[nodiscard]] bool waits() const noexcept { return waits_; }
  void cut() noexcept {
    std::error_code ignored;
    // Said before it is closed, because a child of a fork may still have it.
    socket_.shutdown(::asio::ip::tcp::socket::shutdown_both, ignored);
    socket_.close(ignored);
    timer_.cancel();
  }

 private:
  static constexpr std::size_t longest_head = 8192;
  static constexpr int max_requests = 1000;

  void limit_time() {
    timer_.expires_after(common_.options.deadline);
    timer_.async_wait([kept = weak_from_this()](const std::error_code& failed) {
      const auto it = kept.lock();
      // The time may have been set anew when this was already on its way.
      if (!failed && it && it->timer_.expiry() <= std::chrono::steady_clock::now()) it->cut();
    });
  }

  void read_more() {
    const std::string_view got(buffer_.data(), filled_);
    const std::size_t end = got.find("\r\n\r\n", seen_);
    if (end != std::string_view::npos) return take(got.substr(0, end + 4));
    seen_ = filled_ < 3 ? 0 : filled_ - 3;
    if (filled_ == buffer_.size()) return refuse(431, "the head of the request is longer than 8 KiB", false);
    socket_.async_read_some(::asio::buffer(buffer_.data() + filled_, buffer_.size() - filled_),
                            [it = shared_from_this()](const std::error_code& failed, std::size_t count) {
                              if (failed) return it->cut();
                              it->filled_ += count;
                              it->read_more();
                            });
  }

  void take(std::string_view text) {
    const http_head head = parse_http_head(text);
    keep_ = ++requests_ < max_requests && head.keep_alive;
    with_body_ = head.with_body;
    const int refused = head.refused;
    const bool let_in = allowed(head), known_host = names_this(head.host);
    // What follows belongs to the next request.
    std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(text.size()),
              buffer_.begin() + static_cast<std::ptrdiff_t>(filled_), buffer_.begin());
    filled_ -= text.size();
    seen_ = 0;
    if (refused != 0)
      return refuse(refused,
                    refused == 405   ? "only GET and HEAD are answered"
                    : refused == 413 ? "a request with a body is not read"
                    : refused == 505 ? "only HTTP/1.1 is spoken"
                                     : "this is no request of HTTP/1.1",
                    false);
    if (!known_host)
      return refuse(403, "ask for localhost or an address; for other names, serve with a token", keep_);
    if (!let_in) return refuse(401, "add ?token= and the server's token to the address", keep_);
    waits_ = false;
    unanswered_ = true;
    limit_time();
    // Perhaps later, and when the client is gone.
    const auto answer = [kept = weak_from_this(), number = requests_](http_answer one) {
      const auto it = kept.lock();
      if (it && it->unanswered_ && it->requests_ == number) it->send(std::move(one));
    };
    try {
      common_.handle(head.request, answer,
                     static_cast<::asio::io_context&>(socket_.get_executor().context()));
    } catch (const std::exception& e) {
      answer({.status = 500, .body = std::string(e.what()) + "\n"});
    }
  }

  [[nodiscard]] bool allowed(const http_head& head) const {
    const std::string& expected = common_.options.token;
    if (expected.empty()) return true;
    std::string_view given = head.authorization;
    const bool bearer = given.size() > 7 && same_word(given.substr(0, 7), "Bearer ");
    if (bearer) return same_secret(given.substr(7), expected);
    return same_secret(head.request.parameter("token"), expected);
  }
  /// A page of the web could else read what is served on loopback, under a name of its own that it lets point
  /// there.
  [[nodiscard]] bool names_this(std::string_view host) const {
    if (common_.any_host || host.empty() || host.starts_with('[')) return true;
    const std::string_view name = host.substr(0, host.find(':'));
    return same_word(name, "localhost") || name.find_first_not_of("0123456789.") == std::string_view::npos;
  }

  void refuse(int status, std::string_view why, bool keep) {
    waits_ = false;
    keep_ = keep;
    limit_time();
    send({.status = status, .body = std::string(why) + "\n"});
  }

  void send(http_answer one) {
    unanswered_ = false;
    answer_.clear();
    append(answer_, {"HTTP/1.1 ", one.status, " ", one.status < 300 ? "OK" : "Refused",
                     "\r\nContent-Type: ", one.type, "\r\nContent-Length: ", one.body.size(),
                     "\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n", one.headers,
                     one.status == 405   ? "Allow: GET, HEAD\r\n"
                     : one.status == 401 ? "WWW-Authenticate: Bearer\r\n"
                                         : "",
                     keep_ ? "\r\n" : "Connection: close\r\n\r\n"});
    if (with_body_) answer_ += one.body;
    ::asio::async_write(socket_, ::asio::buffer(answer_),
                        [it = shared_from_this()](const std::error_code& failed, std::size_t) {
                          if (!failed && it->keep_) return it->wait_for_request();
                          it->cut();
                        });
  }

  ::asio::ip::tcp::socket socket_;
  ::asio::steady_timer timer_;
  const rules& common_;
  std::array<char, longest_head> buffer_;
  std::size_t filled_ = 0, seen_ = 0;  ///< bytes in the buffer; those that have been searched
  std::string answer_;
  int requests_ = 0;
  bool waits_ = true, unanswered_ = false, keep_ = false, with_body_ = true;
};

/// Answers GET and HEAD over HTTP/1.1, in one thread of its own, whatever the clients do: heads of at most
/// 8 KiB, no bodies, a deadline for each request and each answer, a limit of connections.
///
/// In: `handle(request)` returns the answer, in the server's thread: while it works, nobody else is answered.
/// Or `handle(request, answer)`, which calls answer(...) in that thread, then or later, or never. An
/// exception is the answer 500. Without a token, an address of loopback is served only under that address or
/// localhost.
/// Errors: `errc::io` if the port cannot be had, `errc::argument` if the address is none.
/// Threads: destroyed by any but its own; that takes as long as the handler does.
class http_server {
 public:
  using reply = callback<http_answer>;

  template <class Handler>
    requires std::is_invocable_r_v<http_answer, Handler&, const http_request&>
  http_server(const http_server_options& options, Handler handle)
      : http_server(options,
                    http_connection::handler([handle = std::move(handle)](
                                                 const http_request& asked, const reply& answer,
                                                 ::asio::io_context&) mutable { answer(handle(asked)); })) {}
  http_server(const http_server_options& options, http_connection::handler handle)
      : all_(std::make_unique<parts>(options, std::move(handle))) {}
  http_server(http_server&&) noexcept = default;
  http_server& operator=(http_server&& other) noexcept {
    std::swap(all_, other.all_);
    return *this;
  }
  ~http_server() {
    // A child after fork has no thread; what it would close is the parent's, too, but for this.
    if (all_ && !all_->home.here()) ::close(all_.release()->acceptor.native_handle());
  }

  [[nodiscard]] std::uint16_t port() const { return all_->port; }
  /// With the token, if there is one.
  [[nodiscard]] std::string url(std::string_view path = "/") const {
    const http_server_options& how = all_->common.options;
    const bool v6 = how.address.find(':') != std::string::npos;
    std::string made = text({"http://", v6 ? "[" : "", how.address, v6 ? "]" : "", ":", port(), path});
    if (!how.token.empty()) append(made, {"?token=", url_encoded(how.token)});
    return made;
  }
  /// Where its handler may do other work that waits for something.
  [[nodiscard]] ::asio::io_context& context() const noexcept { return all_->io; }

 private:
  /// What stays in one place.
  struct parts {
    ::asio::io_context io{1};
    ::asio::ip::tcp::acceptor acceptor{io};
    ::asio::steady_timer pause{io};
    http_connection::rules common;
    std::list<std::shared_ptr<http_connection>> open;  ///< the oldest first
    std::uint16_t port = 0;
    home_process home;
    joined_thread thread;

    parts(const http_server_options& options, http_connection::handler handle)
        : common{options, std::move(handle)} {
      listen();
      accept();
      thread.start<&parts::work>(*this);
    }
    parts(const parts&) = delete;
    ~parts() {
      io.stop();
      thread.join();
    }

    void listen() {
      http_server_options& how = common.options;
      std::error_code wrong;
      const auto address = ::asio::ip::make_address(how.address, wrong);
      if (wrong)
        throw error(errc::argument,
                    {"\"", how.address, "\" is no address to serve on: give one of this machine",
                     " in digits, as 127.0.0.1, or 0.0.0.0 for all of them"});
      constexpr std::chrono::hours longest(24);
      if (how.deadline.count() <= 0 || how.deadline > longest)
        throw error(errc::argument, {"a client has 1 ms to a day, not ", how.deadline.count(),
                                     " ms; give another .deadline"});
      common.any_host = !address.is_loopback() || !how.token.empty();
      // Not opened by Asio, whose sockets programs that are started later would inherit, and keep the port.
      const int fd = ::socket(address.is_v6() ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (fd < 0) refuse(errno);
      acceptor.assign(address.is_v6() ? ::asio::ip::tcp::v6() : ::asio::ip::tcp::v4(), fd);
      acceptor.set_option(::asio::ip::tcp::acceptor::reuse_address(true));
      acceptor.bind({address, how.port}, wrong);
      if (!wrong) acceptor.listen(::asio::socket_base::max_listen_connections, wrong);
      if (wrong) refuse(wrong.value());
      port = acceptor.local_endpoint().port();
    }
    [[noreturn]] void refuse(int code) const {
      const http_server_options& how = common.options;
      const std::string what = text({"cannot serve on port ", how.port, " of ", how.address, ": "});
      if (code == EADDRINUSE)
        throw error(errc::io, {what,
                               "another program or run serves there; give another .port, or 0 for any "
                               "that is free"});
      if (code == EACCES || code == EPERM)
        throw error(errc::io, {what, "this process may not; give a .port from 1024 on"});
      if (code == EADDRNOTAVAIL || code == EAFNOSUPPORT)
        throw error(errc::io, {what,
                               "this machine does not have that .address; give one that it has, or "
                               "0.0.0.0 for all of them"});
      throw error(errc::io, {what, std::generic_category().message(code)});
    }

    void accept() {
      acceptor.async_accept([this](const std::error_code& failed, ::asio::ip::tcp::socket socket) {
        // Without descriptors the next attempt would fail at once, again and again.
        if (failed) return accept_later();
        try {
          ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
          take(std::move(socket));
        } catch (const std::exception&) {  // no memory: this one is closed
        }
        accept();
      });
    }
    void accept_later() {
      pause.expires_after(std::chrono::milliseconds(100));
      pause.async_wait([this](const std::error_code&) { accept(); });
    }
    void take(::asio::ip::tcp::socket socket) {
      open.remove_if([](const auto& one) { return one->ended(); });
      if (open.size() >= common.options.connections) {
        auto least = std::find_if(open.begin(), open.end(), [](const auto& one) { return one->waits(); });
        if (least == open.end()) least = open.begin();
        (*least)->cut();
        open.erase(least);
      }
      open.push_back(std::make_shared<http_connection>(std::move(socket), common));
      open.back()->wait_for_request();
    }
    void work() {
      while (!io.stopped()) {
        try {
          io.run();
        } catch (...) {  // no memory in the middle of one connection, which its deadline ends
        }
      }
    }
  };

  std::unique_ptr<parts> all_;
};

}  // namespace penstock::inline v0_1::detail
