// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <list>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace bench {

/// A store in this process that speaks as much of S3 as a reader needs: a bucket `bench` of many objects,
/// all with the same bytes, HEAD, GET of ranges, and lists in pages of 1000. It looks at no signature, takes
/// `latency` for each request, and counts them.
class listed_store {
 public:
  struct counts {
    std::uint64_t lists = 0, heads = 0, reads = 0, missing = 0;
    [[nodiscard]] std::uint64_t all() const noexcept { return lists + heads + reads + missing; }
  };

  listed_store(std::set<std::string> keys, std::string bytes)
      : keys_(std::move(keys)), bytes_(std::move(bytes)), socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const place = reinterpret_cast<sockaddr*>(&address);
    if (socket_ < 0 || ::bind(socket_, place, size) != 0 || ::listen(socket_, 1024) != 0 ||
        ::getsockname(socket_, place, &size) != 0)
      throw std::runtime_error("the store cannot listen");
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  listed_store(const listed_store&) = delete;
  listed_store& operator=(const listed_store&) = delete;
  ~listed_store() {
    ends_ = true;
    acceptor_.join();
    for (std::thread& one : threads_) one.join();
    ::close(socket_);
  }

  [[nodiscard]] std::string endpoint() const { return "http://127.0.0.1:" + std::to_string(port_); }
  void set_latency(std::chrono::milliseconds latency) { latency_ = latency.count(); }
  [[nodiscard]] counts counted() const {
    return {lists_.load(), heads_.load(), reads_.load(), missing_.load()};
  }

 private:
  void accept_all() {
    while (!ends_.load()) {
      pollfd wait{socket_, POLLIN, 0};
      if (::poll(&wait, 1, 20) <= 0) continue;
      const int peer = ::accept(socket_, nullptr, nullptr);
      if (peer < 0) continue;
      const int one = 1;
      ::setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
      threads_.emplace_back([this, peer] {
        serve(peer);
        ::close(peer);
      });
    }
  }
  void serve(int peer) {
    std::string rest;
    for (std::array<char, 4096> part{}; !ends_.load();) {
      const std::size_t end = rest.find("\r\n\r\n");
      if (end != std::string::npos) {
        const std::string out = answer(std::string_view(rest).substr(0, end + 2));
        rest.erase(0, end + 4);
        if (const auto latency = latency_.load(); latency != 0)
          std::this_thread::sleep_for(std::chrono::milliseconds(latency));
        for (std::string_view left = out; !left.empty();) {
          const auto sent = ::send(peer, left.data(), left.size(), MSG_NOSIGNAL);
          if (sent <= 0) return;
          left.remove_prefix(static_cast<std::size_t>(sent));
        }
        continue;
      }
      pollfd wait{peer, POLLIN, 0};
      if (::poll(&wait, 1, 20) == 0) continue;
      const auto got = ::recv(peer, part.data(), part.size(), 0);
      if (got <= 0) return;
      rest.append(part.data(), static_cast<std::size_t>(got));
    }
  }

  [[nodiscard]] static std::uint64_t number_at(std::string_view text) {
    std::uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }
  [[nodiscard]] std::string answer(std::string_view head) {
    const bool is_head = head.starts_with("HEAD ");
    head.remove_prefix(head.find(' ') + 1);
    const std::string_view target = head.substr(0, head.find(' '));
    constexpr std::string_view listed = "/bench?", object = "/bench/";
    if (target.starts_with(listed)) {
      ++lists_;
      return page(target.substr(listed.size()));
    }
    const bool here =
        target.starts_with(object) && keys_.count(std::string(target.substr(object.size()))) != 0;
    if (!here) {
      ++missing_;
      return "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    }
    const std::string facts = "ETag: \"one\"\r\nContent-Length: ";
    if (is_head) {
      ++heads_;
      return "HTTP/1.1 200 OK\r\n" + facts + std::to_string(bytes_.size()) + "\r\n\r\n";
    }
    ++reads_;
    constexpr std::string_view range = "\r\nRange: bytes=";
    const std::size_t at = head.find(range);
    if (at == std::string_view::npos)
      return "HTTP/1.1 200 OK\r\n" + facts + std::to_string(bytes_.size()) + "\r\n\r\n" + bytes_;
    const std::string_view wanted = head.substr(at + range.size());
    const std::uint64_t first = number_at(wanted);
    const std::uint64_t last =
        std::min<std::uint64_t>(number_at(wanted.substr(wanted.find('-') + 1)), bytes_.size() - 1);
    return "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes " + std::to_string(first) + "-" +
           std::to_string(last) + "/" + std::to_string(bytes_.size()) + "\r\n" + facts +
           std::to_string(last - first + 1) + "\r\n\r\n" + bytes_.substr(first, last - first + 1);
  }
  /// Keys and tokens have only characters that need no encoding.
  [[nodiscard]] std::string page(std::string_view query) const {
    const auto parameter = [&](std::string_view name) {
      const std::size_t at = query.find(name);
      if (at == std::string_view::npos) return std::string();
      const std::string_view value = query.substr(at + name.size());
      return std::string(value.substr(0, value.find('&')));
    };
    const std::string prefix = parameter("prefix="), after = parameter("continuation-token=");
    std::string body = "<ListBucketResult>", last;
    std::size_t entries = 0;
    auto at = after.empty() ? keys_.lower_bound(prefix) : keys_.upper_bound(after);
    for (; at != keys_.end() && at->starts_with(prefix) && entries != 1000; ++at, ++entries) {
      last = *at;
      body += "<Contents><Key>" + last + "</Key><Size>" + std::to_string(bytes_.size()) +
              "</Size><ETag>&quot;one&quot;</ETag></Contents>";
    }
    const bool more = at != keys_.end() && at->starts_with(prefix);
    body += more
                ? "<IsTruncated>true</IsTruncated><NextContinuationToken>" + last + "</NextContinuationToken>"
                : "<IsTruncated>false</IsTruncated>";
    body += "</ListBucketResult>";
    return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

  const std::set<std::string> keys_;
  const std::string bytes_;
  int socket_;
  std::uint16_t port_ = 0;
  std::atomic<std::int64_t> latency_{0};
  std::atomic<std::uint64_t> lists_{0}, heads_{0}, reads_{0}, missing_{0};
  std::atomic<bool> ends_{false};
  std::thread acceptor_;
  std::list<std::thread> threads_;
};

}  // namespace bench
