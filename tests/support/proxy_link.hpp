// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/http_head.hpp"
#include "support/network_fault.hpp"
#include "support/sockets.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace penstock_test {

using fault_counts = std::array<std::atomic<std::uint64_t>, fault_kinds>;

/// A connection of a `fault_proxy`. Every wait ends when the proxy's stop descriptor becomes readable.
class proxy_link {
 public:
  /// In: a socket that does not block, and the descriptor.
  proxy_link(owned_socket socket, int stop) : socket_(std::move(socket)), stop_(stop) {
    const int yes = 1;  // a head and its body are two writes; a socket that listens passes this on
    ::setsockopt(get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  }

  /// A connection to a port of 127.0.0.1; not open if there is none.
  [[nodiscard]] static proxy_link to(std::uint16_t port, int stop) {
    owned_socket made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    int failed = detail::with_loopback(
        false, port, [&](auto* address, auto size) { return ::connect(made.get(), address, size); });
    proxy_link link(std::move(made), stop);
    if (failed != 0 && errno == EINPROGRESS) {
      ::socklen_t size = sizeof failed;
      if (!link.wait(POLLOUT) || ::getsockopt(link.get(), SOL_SOCKET, SO_ERROR, &failed, &size) != 0)
        failed = -1;
    }
    if (failed != 0) link.close();
    return link;
  }

  [[nodiscard]] int get() const noexcept { return socket_.get(); }
  [[nodiscard]] bool open() const noexcept { return socket_.open(); }
  void close() noexcept { socket_.close(); }
  void reset() noexcept { socket_.reset(); }

  /// Waits until something can be read or accepted, or has ended; false if the proxy stops.
  [[nodiscard]] bool readable() const { return wait(POLLIN); }
  /// Waits for a time; false if the client goes before, or the proxy stops.
  [[nodiscard]] bool pause(std::chrono::milliseconds time) const {
    const auto end = std::chrono::steady_clock::now() + time;
    for (;;) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
      if (left <= 0) return true;
      std::array<::pollfd, 2> both{::pollfd{stop_, POLLIN, 0}, ::pollfd{get(), POLLRDHUP, 0}};
      const int count = ::poll(both.data(), 2, static_cast<int>(left));
      if (count > 0) return false;
    }
  }
  /// Waits until the other side gives up.
  void wait_for_end() const { (void)pause(std::chrono::hours(24)); }

  bool send(std::string_view text) {
    while (!text.empty()) {
      const auto sent = ::send(get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent > 0) {
        text.remove_prefix(static_cast<std::size_t>(sent));
      } else if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        if (!wait(POLLOUT)) return false;
      } else if (errno != EINTR) {
        return false;
      }
    }
    return true;
  }
  bool send_end() { return ::shutdown(get(), SHUT_WR) == 0; }

  /// Appends what has arrived; false at the end.
  bool take(std::string& into) {
    std::string_view here = buffered();
    if (here.empty() && !fill(nullptr)) return false;
    here = buffered();
    into.append(here);
    begin_ += here.size();
    return true;
  }
  /// Which of two links can be read; nothing if the proxy stops.
  [[nodiscard]] std::optional<std::pair<bool, bool>> either_readable(bool this_one, const proxy_link& other,
                                                                     bool other_one) const {
    if (this_one && !buffered().empty()) return std::pair{true, false};
    std::array<::pollfd, 3> all{::pollfd{stop_, POLLIN, 0}, ::pollfd{this_one ? get() : -1, POLLIN, 0},
                                ::pollfd{other_one ? other.get() : -1, POLLIN, 0}};
    while (::poll(all.data(), all.size(), -1) < 0) {
    }
    if (all[0].revents != 0) return std::nullopt;
    return std::pair{all[1].revents != 0, all[2].revents != 0};
  }

  /// The next head; nothing if the connection ends before it does. `client` is who waits for it.
  [[nodiscard]] std::optional<http_head> read_head(const proxy_link* client = nullptr) {
    for (;;) {
      const std::size_t end = buffered().find("\r\n\r\n");
      if (end != std::string_view::npos) {
        http_head head(buffered().substr(0, end + 4));
        begin_ += end + 4;
        return head;
      }
      if (buffered().size() > 262'144 || !fill(client)) return std::nullopt;
    }
  }
  /// Passes `length` bytes on, in pieces, to `pass`, which returns whether to go on.
  template <class Pass>
  bool read_body(std::uint64_t length, Pass pass, const proxy_link* client = nullptr) {
    while (length != 0) {
      if (buffered().empty() && !fill(client)) return false;
      const std::string_view piece =
          buffered().substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(length, buffered().size())));
      if (!pass(piece)) return false;
      begin_ += piece.size();
      length -= piece.size();
    }
    return true;
  }
  template <class Pass>
  bool read_some(Pass pass, const proxy_link* client) {
    if (buffered().empty() && !fill(client)) return false;
    return read_body(buffered().size(), pass);
  }
  /// Passes a chunked body on as it is, with its sizes.
  template <class Pass>
  bool read_chunked(Pass pass) {
    for (;;) {
      std::optional<std::string> line = read_line();
      if (!line || !pass(*line)) return false;
      const std::uint64_t size = std::strtoull(line->c_str(), nullptr, 16);
      if (size == 0) break;
      if (!read_body(size + 2, pass)) return false;
    }
    for (;;) {  // the trailer, up to its blank line
      std::optional<std::string> line = read_line();
      if (!line || !pass(*line)) return false;
      if (*line == "\r\n") return true;
    }
  }

  // What the proxy remembers of a client's connection.
  bool served = false, closes_at_next = false;
  std::unique_ptr<proxy_link> server;

 private:
  [[nodiscard]] std::string_view buffered() const { return std::string_view(buffer_).substr(begin_); }
  [[nodiscard]] std::optional<std::string> read_line() {
    for (;;) {
      const std::size_t end = buffered().find("\r\n");
      if (end != std::string_view::npos) {
        std::string line(buffered().substr(0, end + 2));
        begin_ += end + 2;
        return line;
      }
      if (!fill(nullptr)) return std::nullopt;
    }
  }
  /// Receives more; false at the end, or if the client that waits for it is gone.
  bool fill(const proxy_link* client) {
    buffer_.erase(0, begin_);
    begin_ = 0;
    for (;;) {
      const std::size_t had = buffer_.size();
      buffer_.resize(had + 65'536);
      const auto got = ::recv(get(), buffer_.data() + had, 65'536, 0);
      const int why = errno;
      buffer_.resize(had + (got > 0 ? static_cast<std::size_t>(got) : 0));
      if (got > 0) return true;
      if (got == 0 || (why != EAGAIN && why != EWOULDBLOCK && why != EINTR)) return false;
      if (!wait(POLLIN, client)) return false;
    }
  }
  [[nodiscard]] bool wait(short what, const proxy_link* client = nullptr) const {
    std::array<::pollfd, 3> all{::pollfd{stop_, POLLIN, 0}, ::pollfd{get(), what, 0},
                                ::pollfd{client == nullptr ? -1 : client->get(), POLLRDHUP, 0}};
    while (::poll(all.data(), all.size(), -1) < 0) {
    }
    return all[0].revents == 0 && all[2].revents == 0;
  }

  owned_socket socket_;
  int stop_;
  std::string buffer_;
  std::size_t begin_ = 0;
};

/// Sends the bytes of an answer to a client, and does harm at the fault's place.
class faulty_writer {
 public:
  /// `length` of the body, if it is known.
  faulty_writer(proxy_link& client, const network_fault& fault, std::optional<std::uint64_t> length,
                std::atomic<std::uint64_t>& bytes, fault_counts& done)
      : client_(client), fault_(fault), place_(fault.at), bytes_(bytes), done_(done) {
    if (length && place_ >= *length) place_ = *length / 2;
    has_bytes_ = !length || *length != 0;
    const fault_kind kind = fault.kind;
    due_ = kind == fault_kind::stall || kind == fault_kind::cut || kind == fault_kind::reset ||
           (kind == fault_kind::flip && has_bytes_);
    if (kind == fault_kind::throttle && fault.amount != 0) ++done_[static_cast<std::size_t>(kind)];
  }

  /// Call before the head is sent. This and the others return false if the connection has ended.
  bool begin() { return !(due_ && fault_.before_answer) || harm(); }

  bool write(std::string_view bytes) {
    while (!bytes.empty()) {
      if (due_ && position_ == place_ && fault_.kind != fault_kind::flip && !harm()) return false;
      std::size_t size = bytes.size();
      if (due_ && position_ < place_)
        size = static_cast<std::size_t>(std::min<std::uint64_t>(size, place_ - position_));
      const bool slow = fault_.kind == fault_kind::throttle && fault_.amount != 0;
      if (slow) size = static_cast<std::size_t>(std::clamp<std::uint64_t>(fault_.amount / 50, 1, size));
      if (due_ && position_ == place_) {  // a flip
        (void)harm();
        const char changed = static_cast<char>(bytes[0] ^ 1);
        if (!client_.send({&changed, 1})) return false;
        size = 1;
      } else if (!client_.send(bytes.substr(0, size))) {
        return false;
      }
      if (slow && !client_.pause(std::chrono::milliseconds(1000 * size / fault_.amount))) return false;
      position_ += size;
      bytes_ += size;
      bytes.remove_prefix(size);
    }
    return true;
  }

  /// Call after the last byte: a fault behind it, or of a body without bytes, is due now.
  bool end() { return !due_ || fault_.kind == fault_kind::flip || harm(); }

 private:
  bool harm() {
    due_ = false;
    ++done_[static_cast<std::size_t>(fault_.kind)];
    if (fault_.kind == fault_kind::flip) return true;
    if (fault_.kind == fault_kind::stall) {
      if (fault_.time.count() != 0) return client_.pause(fault_.time);
      client_.wait_for_end();
    }
    if (fault_.kind == fault_kind::reset) client_.reset();
    return false;
  }

  proxy_link& client_;
  const network_fault& fault_;
  std::uint64_t place_, position_ = 0;
  bool due_ = false, has_bytes_ = false;
  std::atomic<std::uint64_t>& bytes_;
  fault_counts& done_;
};

}  // namespace penstock_test
