// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/catch.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace penstock_test {

/// A request as it came: its first line and headers, and the body that Content-Length announced.
struct web_request {
  std::string head, body;
  [[nodiscard]] std::string method() const { return head.substr(0, head.find(' ')); }
  [[nodiscard]] std::string target() const {
    const std::size_t begin = head.find(' ') + 1;
    return head.substr(begin, head.find(' ', begin) - begin);
  }
  /// The value of a header, whose name is spelled as the client does; "" without it.
  [[nodiscard]] std::string header(std::string_view name) const {
    const std::size_t at = head.find("\r\n" + std::string(name) + ": ");
    if (at == std::string::npos) return {};
    const std::size_t begin = at + 4 + name.size();
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
};

/// Texts that scripts write down for the test.
class web_log {
 public:
  void add(std::string text) {
    const std::scoped_lock lock(mutex_);
    all_.push_back(std::move(text));
  }
  void clear() {
    const std::scoped_lock lock(mutex_);
    all_.clear();
  }
  [[nodiscard]] std::vector<std::string> all() const {
    const std::scoped_lock lock(mutex_);
    return all_;
  }
  /// The last text; "" if there is none.
  [[nodiscard]] std::string last() const {
    const std::scoped_lock lock(mutex_);
    return all_.empty() ? std::string() : all_.back();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> all_;
};

/// One side of a connection that a script serves.
class web_peer {
 public:
  /// With `context`, the peer speaks TLS.
  web_peer(int socket, SSL_CTX* context, const std::atomic<bool>& ends) : socket_(socket), ends_(ends) {
    if (context == nullptr) return;
    const timeval limit{30, 0};  // for SSL_accept; a client that says nothing ends the test otherwise
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    tls_ = SSL_new(context);
    SSL_set_fd(tls_, socket_);
    greeted_ = SSL_accept(tls_) == 1;
  }
  web_peer(const web_peer&) = delete;
  web_peer& operator=(const web_peer&) = delete;
  ~web_peer() {
    if (tls_ == nullptr) return;
    if (greeted_) SSL_shutdown(tls_);
    SSL_free(tls_);
  }
  /// Whether a handshake succeeded, on this side at least.
  [[nodiscard]] bool greeted() const noexcept { return greeted_; }

  /// The next request; false if the client has gone or the server ends.
  bool next(web_request& into) {
    std::size_t end = 0;
    while ((end = rest_.find("\r\n\r\n")) == std::string::npos)
      if (!receive()) return false;
    into.head = rest_.substr(0, end + 2);
    rest_.erase(0, end + 4);
    const std::string length = into.header("Content-Length");
    const std::size_t size = length.empty() ? 0 : std::stoul(length);
    while (rest_.size() < size)
      if (!receive()) return false;
    into.body = rest_.substr(0, size);
    rest_.erase(0, size);
    return true;
  }
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = tls_ != nullptr ? SSL_write(tls_, bytes.data(), static_cast<int>(bytes.size()))
                                        : ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  /// Waits until the client has gone, or the server ends.
  void stall() {
    while (receive()) {
    }
  }
  /// The connection ends with a reset.
  void reset() {
    const linger now{1, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }
  [[nodiscard]] int socket() const noexcept { return socket_; }
  /// Sends what comes from one side to the other until one of them ends; for proxies.
  void join(int other) {
    if (!rest_.empty() && ::send(other, rest_.data(), rest_.size(), MSG_NOSIGNAL) < 0) return;
    for (std::array<char, 4096> part{}; !ends_.load();) {
      std::array<pollfd, 2> both = {pollfd{socket_, POLLIN, 0}, pollfd{other, POLLIN, 0}};
      if (::poll(both.data(), 2, 20) < 0) return;
      for (std::size_t i = 0; i < 2; ++i) {
        if (both[i].revents == 0) continue;
        const ssize_t got = ::recv(both[i].fd, part.data(), part.size(), 0);
        if (got <= 0) return;
        if (::send(both[1 - i].fd, part.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL) < 0) return;
      }
    }
  }

 private:
  bool receive() {
    for (;;) {
      if (tls_ != nullptr && !greeted_) return false;
      pollfd wait{socket_, POLLIN, 0};
      const bool here = tls_ != nullptr && SSL_pending(tls_) > 0;
      const int ready = here ? 1 : ::poll(&wait, 1, 20);
      if (ends_.load() || ready < 0) return false;
      if (ready == 0) continue;
      std::array<char, 4096> part{};
      const auto got = tls_ != nullptr ? SSL_read(tls_, part.data(), static_cast<int>(part.size()))
                                       : ::recv(socket_, part.data(), part.size(), 0);
      if (got <= 0) return false;
      rest_.append(part.data(), static_cast<std::size_t>(got));
      return true;
    }
  }

  int socket_;
  const std::atomic<bool>& ends_;
  SSL* tls_ = nullptr;
  bool greeted_ = true;
  std::string rest_;
};

/// A server on a free port of the loopback: each connection has a thread, which runs the script; the
/// connection is closed when the script returns.
///
///     web_server server([](web_peer& peer) { ... });
class web_server {
 public:
  using script = std::function<void(web_peer&)>;

  explicit web_server(script served, bool six = false, SSL_CTX* context = nullptr)
      : script_(std::move(served)), six_(six), context_(context) {
    socket_ = ::socket(six ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
    REQUIRE(socket_ >= 0);
    sockaddr_in6 address6{};
    address6.sin6_family = AF_INET6;
    address6.sin6_addr = in6addr_loopback;
    sockaddr_in address4{};
    address4.sin_family = AF_INET;
    address4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const address =
        six ? reinterpret_cast<sockaddr*>(&address6) : reinterpret_cast<sockaddr*>(&address4);
    socklen_t size = six ? sizeof address6 : sizeof address4;
    REQUIRE(::bind(socket_, address, size) == 0);
    REQUIRE(::listen(socket_, 1024) == 0);
    REQUIRE(::getsockname(socket_, address, &size) == 0);
    port_ = ntohs(six ? address6.sin6_port : address4.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  web_server(const web_server&) = delete;
  web_server& operator=(const web_server&) = delete;
  ~web_server() {
    ends_ = true;
    acceptor_.join();
    for (std::thread& one : threads_) one.join();
    ::close(socket_);
  }

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// The URL of a path on this server.
  [[nodiscard]] std::string at(std::string_view path) const {
    return std::string(context_ != nullptr ? "https" : "http") + (six_ ? "://[::1]:" : "://127.0.0.1:") +
           std::to_string(port_) + std::string(path);
  }
  /// The number of connections that were accepted.
  [[nodiscard]] int connections() const noexcept { return connections_.load(); }

 private:
  void accept_all() {
    while (!ends_.load()) {
      pollfd wait{socket_, POLLIN, 0};
      if (::poll(&wait, 1, 20) <= 0) continue;
      const int peer = ::accept(socket_, nullptr, nullptr);
      if (peer < 0) continue;
      ++connections_;
      threads_.emplace_back([this, peer] {
        // OpenSSL writes without MSG_NOSIGNAL, even when it is asked to read, and a client may have gone.
        sigset_t broken_pipe;
        sigemptyset(&broken_pipe);
        sigaddset(&broken_pipe, SIGPIPE);
        ::pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
        {
          web_peer served(peer, context_, ends_);
          script_(served);
        }
        ::close(peer);
      });
    }
  }

  script script_;
  bool six_;
  SSL_CTX* context_;
  int socket_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<bool> ends_{false};
  std::atomic<int> connections_{0};
  std::thread acceptor_;
  std::vector<std::thread> threads_;
};

/// A script that answers each request by what the function makes of it, on one connection after the other.
inline web_server::script answering(std::function<std::string(const web_request&)> answer) {
  return [answer = std::move(answer)](web_peer& peer) {
    for (web_request request; peer.next(request);)
      if (!peer.send(answer(request))) return;
  };
}

/// An answer with a body; `headers` are lines, each with its "\r\n".
inline std::string web_answer(std::string_view status, std::string_view headers, std::string_view body) {
  return "HTTP/1.1 " + std::string(status) + "\r\n" + std::string(headers) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

/// What a good server answers for an object: HEAD and GET, with ranges and If-Match.
inline std::string web_object(const web_request& request, std::string_view bytes,
                              std::string_view etag = "\"one\"") {
  const std::string facts = etag.empty() ? std::string() : "ETag: " + std::string(etag) + "\r\n";
  const std::string match = request.header("If-Match"), range = request.header("Range");
  if (!match.empty() && match != etag) return web_answer("412 Precondition Failed", facts, "");
  if (request.method() == "HEAD")
    return "HTTP/1.1 200 OK\r\n" + facts + "Content-Length: " + std::to_string(bytes.size()) + "\r\n\r\n";
  if (range.empty()) return web_answer("200 OK", facts, bytes);
  const std::size_t dash = range.find('-');
  const std::size_t first = std::stoul(range.substr(6)), last = std::stoul(range.substr(dash + 1));
  if (first >= bytes.size())
    return web_answer("416 Range Not Satisfiable",
                      facts + "Content-Range: bytes */" + std::to_string(bytes.size()) + "\r\n", "");
  const std::string_view part = bytes.substr(first, last - first + 1);
  return web_answer("206 Partial Content",
                    facts + "Content-Range: bytes " + std::to_string(first) + "-" +
                        std::to_string(first + part.size() - 1) + "/" + std::to_string(bytes.size()) + "\r\n",
                    part);
}

}  // namespace penstock_test
