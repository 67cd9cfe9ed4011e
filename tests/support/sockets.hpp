// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

/// Sockets on loopback, for servers that tests start and for the proxy between them and the client.
namespace penstock_test {

/// A descriptor that is closed on destruction.
class owned_socket {
 public:
  owned_socket() = default;
  explicit owned_socket(int value) noexcept : value_(value) {}
  owned_socket(owned_socket&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  owned_socket& operator=(owned_socket&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~owned_socket() { close(); }

  [[nodiscard]] int get() const noexcept { return value_; }
  [[nodiscard]] bool open() const noexcept { return value_ >= 0; }
  void close() noexcept {
    if (value_ >= 0) ::close(std::exchange(value_, -1));
  }
  /// Closes a connection with RST, so that the other side gets an error rather than an end.
  void reset() noexcept {
    const ::linger reset_on_close{1, 0};
    if (value_ >= 0) ::setsockopt(value_, SOL_SOCKET, SO_LINGER, &reset_on_close, sizeof reset_on_close);
    close();
  }

 private:
  int value_ = -1;
};

namespace detail {

/// Calls `use` with the address of a port on loopback.
template <class Use>
auto with_loopback(bool v6, std::uint16_t port, Use use) {
  if (v6) {
    ::sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    address.sin6_addr = in6addr_loopback;
    return use(reinterpret_cast<const ::sockaddr*>(&address), static_cast<::socklen_t>(sizeof address));
  }
  ::sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return use(reinterpret_cast<const ::sockaddr*>(&address), static_cast<::socklen_t>(sizeof address));
}

[[nodiscard]] inline owned_socket tcp_socket(bool v6) {
  return owned_socket(::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

[[nodiscard]] inline owned_socket bound(bool v6, std::uint16_t port) {
  owned_socket one = tcp_socket(v6);
  const int yes = 1;
  if (!one.open()) return one;
  ::setsockopt(one.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (with_loopback(v6, port, [&](auto* address, auto size) { return ::bind(one.get(), address, size); }) !=
      0)
    one.close();
  return one;
}

/// Takes the name of a port among all tests that run on this machine, until the process ends; not open if
/// another has it. A server may begin to listen seconds after its port was chosen.
[[nodiscard]] inline owned_socket reserve(std::uint16_t port) {
  ::sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // Linux has names that are in no folder: they begin with a zero byte, and go with their socket.
  const std::string name = "penstock-test-port-" + std::to_string(port);
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  owned_socket one(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto size = static_cast<::socklen_t>(offsetof(::sockaddr_un, sun_path) + 1 + name.size());
  if (one.open() && ::bind(one.get(), reinterpret_cast<const ::sockaddr*>(&address), size) != 0) one.close();
  return one;
}

}  // namespace detail

/// Whether this machine has ::1.
[[nodiscard]] inline bool have_ipv6() { return detail::bound(true, 0).open(); }

/// A port of loopback on which nothing listens now, and which no other test gets before this process ends. It
/// is below the range from which the system takes ports for outgoing connections, so that a server can be
/// started again on it.
[[nodiscard]] inline std::uint16_t free_port() {
  static std::mutex lock;
  static std::vector<owned_socket> reserved;
  const std::scoped_lock guard(lock);
  std::random_device entropy;
  for (int tries = 0; tries < 1000; ++tries) {
    const auto port = static_cast<std::uint16_t>(10'240 + entropy() % (32'000 - 10'240));
    owned_socket name = detail::reserve(port);
    if (!name.open()) continue;
    reserved.push_back(std::move(name));
    if (detail::bound(false, port).open() && (!have_ipv6() || detail::bound(true, port).open())) return port;
  }
  throw std::runtime_error("no free port on 127.0.0.1");
}

/// A socket that listens on a free port of 127.0.0.1, and the port.
struct listening_socket {
  owned_socket socket;
  std::uint16_t port = 0;
};
[[nodiscard]] inline listening_socket listen_on_loopback() {
  listening_socket made{detail::bound(false, 0), 0};
  ::sockaddr_in address{};
  ::socklen_t size = sizeof address;
  if (!made.socket.open() || ::listen(made.socket.get(), 128) != 0 ||
      ::getsockname(made.socket.get(), reinterpret_cast<::sockaddr*>(&address), &size) != 0)
    throw std::runtime_error("cannot listen on 127.0.0.1: " + std::generic_category().message(errno));
  made.port = ntohs(address.sin_port);
  return made;
}

/// A connection to a port of 127.0.0.1; not open if nothing listens there.
[[nodiscard]] inline owned_socket connect_to_loopback(std::uint16_t port) {
  owned_socket one = detail::tcp_socket(false);
  const int yes = 1;
  ::setsockopt(one.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (detail::with_loopback(
          false, port, [&](auto* address, auto size) { return ::connect(one.get(), address, size); }) != 0)
    one.close();
  return one;
}

/// A blocking client of a few lines, for tests of servers: no step of it waits longer than `limit`.
class plain_client {
 public:
  explicit plain_client(std::uint16_t port, std::chrono::seconds limit = std::chrono::seconds(60))
      : socket_(connect_to_loopback(port)) {
    wait_at_most(limit);
  }
  void wait_at_most(std::chrono::milliseconds limit) noexcept {
    const ::timeval wait{limit.count() / 1000, limit.count() % 1000 * 1000};
    if (socket_.open()) ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  }
  [[nodiscard]] bool open() const noexcept { return socket_.open(); }
  void close() noexcept { socket_.close(); }

  /// False if the connection is broken.
  bool send(std::string_view text) noexcept {
    while (!text.empty()) {
      const auto sent = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  /// Reads until it has `count` bytes in all, or the connection ends; what `how` then says.
  enum class ending { enough, closed, reset, late };
  ending receive(std::string& into, std::size_t count) {
    char part[16384];
    while (into.size() < count) {
      const auto got = ::recv(socket_.get(), part, std::min(sizeof part, count - into.size()), 0);
      if (got == 0) return ending::closed;
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? ending::late : ending::reset;
      into.append(part, static_cast<std::size_t>(got));
    }
    return ending::enough;
  }

  /// An answer: its head with the blank line, its body, and how reading ended.
  struct answer {
    std::string head, body;
    ending how = ending::closed;
    [[nodiscard]] int status() const { return head.size() < 12 ? 0 : std::atoi(head.c_str() + 9); }
  };
  /// Reads one answer whose head has a Content-Length, or that ends with its connection.
  [[nodiscard]] answer receive_answer(bool has_body = true) {
    answer made;
    while (!made.head.ends_with("\r\n\r\n")) {
      made.how = receive(made.head, made.head.size() + 1);
      if (made.how != ending::enough) return made;
    }
    const std::size_t found = made.head.find("Content-Length: ");
    const std::size_t length = found == std::string::npos
                                   ? static_cast<std::size_t>(-1)
                                   : static_cast<std::size_t>(std::atoll(made.head.c_str() + found + 16));
    if (has_body && made.status() != 204 && made.status() != 304) made.how = receive(made.body, length);
    return made;
  }
  /// Sends a GET with further lines of head, each with its line break, and reads the answer.
  [[nodiscard]] answer get(const std::string& path, const std::string& lines = {}) {
    if (!send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + lines + "\r\n"))
      return {{}, {}, ending::reset};
    return receive_answer();
  }

 private:
  owned_socket socket_;
};

}  // namespace penstock_test
