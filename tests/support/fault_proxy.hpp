// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/http_head.hpp"
#include "support/network_fault.hpp"
#include "support/proxy_link.hpp"
#include "support/sockets.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace penstock_test {

/// What a proxy looks at.
enum class proxy_of {
  requests,     ///< HTTP/1.1; a fault for each request
  connections,  ///< bytes, such as TLS; a fault for each connection
};

/// A request that a proxy has met, and what it was going to do to it.
struct proxied_request {
  std::string method, target, range;
  fault_kind fault = fault_kind::none;
};

/// A TCP proxy on loopback between a client and a server, that does harm: see `network_fault`.
///
///     fault_proxy proxy(server.port());
///     proxy.script({network_fault::none(), network_fault::cut(1000)});      // the first two requests
///     proxy.sometimes(network_fault::slow_down(), {.one_in = 20, .seed = 7});  // of all others
///     fetch(proxy.url("a.tar"));
///     CHECK(proxy.count(fault_kind::cut) == 1);
///
/// Faults of a script go to requests in the order of their arrival. Those of `sometimes` are drawn from the
/// seed, the request (method, target, range) and how often it was seen before: the order in which
/// requests arrive does not matter. A proxy of connections draws from the connection's number.
/// CONNECT is answered, whatever the host, with a tunnel to the server, and an absolute URI is passed on, so
/// that it can be the proxy of a client's environment.
/// Destruction ends all connections, stalled ones too, and waits for the threads.
/// Threads: one for each connection; any may call.
class fault_proxy {
 public:
  struct chance {
    std::uint64_t one_in = 10;
    std::uint64_t seed = 1;
    /// How often the same request may meet it; then it is spared, so that trying again helps at last.
    std::uint64_t max_for_one_request = ~std::uint64_t{0};
    /// Of requests with this method only; "": of all.
    std::string method{};
  };

  explicit fault_proxy(std::uint16_t server, proxy_of what = proxy_of::requests)
      : server_(server),
        what_(what),
        stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        here_(listen_on_loopback()) {
    ::fcntl(here_.socket.get(), F_SETFL, O_NONBLOCK);  // a client may have gone when it would be accepted
    acceptor_ = std::thread([this] { accept(); });
  }
  fault_proxy(const fault_proxy&) = delete;
  fault_proxy& operator=(const fault_proxy&) = delete;
  ~fault_proxy() {
    ::eventfd_write(stop_.get(), 1);
    acceptor_.join();
    for (connection& one : connections_) one.thread.join();
  }

  [[nodiscard]] std::uint16_t port() const noexcept { return here_.port; }
  [[nodiscard]] std::string url(const std::string& path = {}) const {
    return "http://127.0.0.1:" + std::to_string(port()) + "/" + path;
  }

  /// Faults for the next requests, one each.
  void script(const std::vector<network_fault>& faults) {
    const std::scoped_lock held(lock_);
    script_.insert(script_.end(), faults.begin(), faults.end());
  }
  /// A fault for a part of the requests. Of several, the first that is drawn counts.
  void sometimes(network_fault fault, chance how_often) {
    const std::scoped_lock held(lock_);
    rules_.push_back({std::move(fault), how_often});
  }
  /// No faults from now on; those that have begun go on.
  void behave() {
    const std::scoped_lock held(lock_);
    script_.clear();
    rules_.clear();
  }

  /// Connections accepted, and requests met, in all.
  [[nodiscard]] std::uint64_t connections() const noexcept { return accepted_.load(); }
  [[nodiscard]] std::uint64_t requests() const noexcept { return requests_.load(); }
  /// How often a fault was done. One that could not be (a wrong range, where there is none) does not count.
  [[nodiscard]] std::uint64_t count(fault_kind kind) const noexcept {
    return done_[static_cast<std::size_t>(kind)].load();
  }
  [[nodiscard]] std::uint64_t faults() const noexcept {
    std::uint64_t sum = 0;
    for (const auto& one : done_) sum += one.load();
    return sum;
  }
  /// Bytes of answers passed on to clients, without those of heads.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_.load(); }
  [[nodiscard]] std::vector<proxied_request> seen() const {
    const std::scoped_lock held(lock_);
    return seen_;
  }

 private:
  struct rule {
    network_fault fault;
    chance how_often;
  };
  struct connection {
    std::atomic<bool> over{false};
    std::thread thread;
  };

  // ---- which fault

  static std::uint64_t mixed(std::uint64_t x) noexcept {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  /// The fault for what is described by `what`, which was met `times` times before. With the lock held.
  [[nodiscard]] network_fault chosen(const std::string& what) {
    const std::uint64_t times = times_[what]++;
    if (!script_.empty()) {
      network_fault first = std::move(script_.front());
      script_.pop_front();
      return first;
    }
    std::uint64_t hash = 14695981039346656037u;
    for (const char c : what) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      const chance& odds = rules_[i].how_often;
      if (!odds.method.empty() && !what.starts_with(odds.method + " ")) continue;
      if (mixed(mixed(hash ^ mixed(odds.seed + i)) + times) % odds.one_in != 0) continue;
      if (met_[{i, what}]++ < odds.max_for_one_request) return rules_[i].fault;
    }
    return {};
  }
  [[nodiscard]] network_fault chosen(const http_head& request) {
    const std::scoped_lock held(lock_);
    proxied_request one{request.word(0), request.word(1), request.field("Range"), fault_kind::none};
    network_fault fault = chosen(one.method + " " + one.target + " " + one.range);
    one.fault = fault.kind;
    seen_.push_back(std::move(one));
    return fault;
  }
  void note(fault_kind kind) noexcept { ++done_[static_cast<std::size_t>(kind)]; }

  // ---- connections

  void accept() {
    proxy_link waiting(std::move(here_.socket), stop_.get());
    while (waiting.readable()) {
      owned_socket client(::accept4(waiting.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!client.open()) continue;
      const std::uint64_t number = accepted_++;
      for (auto one = connections_.begin(); one != connections_.end();) {
        if (one->over.load()) {
          one->thread.join();
          one = connections_.erase(one);
        } else {
          ++one;
        }
      }
      connection& mine = connections_.emplace_back();
      mine.thread = std::thread([this, &mine, number, socket = std::move(client)]() mutable {
        proxy_link link(std::move(socket), stop_.get());
        if (what_ == proxy_of::connections)
          carry(link, number);
        else
          while (serve(link)) {
          }
        link.close();
        mine.over.store(true);
      });
    }
  }

  void carry(proxy_link& client, std::uint64_t number) {
    network_fault fault;
    {
      const std::scoped_lock held(lock_);
      fault = chosen("connection " + std::to_string(number));
    }
    if (fault.kind == fault_kind::silent) {
      note(fault.kind);
      client.wait_for_end();
      return;
    }
    proxy_link server = proxy_link::to(server_, stop_.get());
    if (server.open()) tunnel(client, server, fault);
  }

  void tunnel(proxy_link& client, proxy_link& server, const network_fault& fault) {
    faulty_writer out(client, fault, std::nullopt, bytes_, done_);
    if (!out.begin()) return;
    for (bool from_client = true, from_server = true; from_client || from_server;) {
      const auto ready = client.either_readable(from_client, server, from_server);
      if (!ready) return;
      std::string piece;
      if (ready->first) {
        from_client = client.take(piece);
        if (from_client ? !server.send(piece) : !server.send_end()) return;
      }
      if (ready->second) {
        piece.clear();
        from_server = server.take(piece);
        if (from_server ? !out.write(piece) : !client.send_end()) return;
      }
    }
  }

  // ---- requests

  /// One request of a connection and its answer. Returns whether the connection lasts.
  bool serve(proxy_link& client) {
    const std::optional<http_head> arrived = client.read_head();
    if (!arrived) return false;
    ++requests_;
    http_head request = *arrived;
    const network_fault fault = chosen(request);
    if (client.closes_at_next) {
      note(fault_kind::close_idle);
      return false;
    }
    if (fault.kind == fault_kind::close_idle) {
      if (client.served) note(fault.kind);
      if (client.served) return false;
      client.closes_at_next = true;
    }
    client.served = true;
    if (fault.kind == fault_kind::silent) {
      note(fault.kind);
      client.wait_for_end();
      return false;
    }
    if (lower_case_is(request.field("Expect"), "100-continue")) {
      request.remove("Expect");
      if (!client.send("HTTP/1.1 100 Continue\r\n\r\n")) return false;
    }
    const bool closes = request.closes();
    if (fault.kind == fault_kind::answer) {
      note(fault.kind);
      const bool head_only = request.word(0) == "HEAD";
      const std::string text = head_only ? fault.text.substr(0, fault.text.find("\r\n\r\n") + 4) : fault.text;
      return pass_body(request, client, nullptr) && client.send(text) && !closes;
    }
    if (request.word(0) == "CONNECT") {
      proxy_link server = proxy_link::to(server_, stop_.get());
      if (server.open() && client.send("HTTP/1.1 200 Connection established\r\n\r\n"))
        tunnel(client, server, fault);
      return false;
    }
    if (fault.kind == fault_kind::whole && request.has("Range")) {
      note(fault.kind);
      request.remove("Range");
      request.remove("If-Range");
    }
    return forward(request, client, fault) && !closes;
  }

  [[nodiscard]] static bool lower_case_is(std::string text, std::string_view wanted) {
    for (char& c : text)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return text == wanted;
  }

  /// Passes the body of a request on; to nobody, if there is no server.
  static bool pass_body(const http_head& head, proxy_link& from, proxy_link* to) {
    const auto pass = [&](std::string_view piece) { return to == nullptr || to->send(piece); };
    if (head.chunked()) return from.read_chunked(pass);
    return from.read_body(head.content_length().value_or(0), pass);
  }

  bool forward(const http_head& request, proxy_link& client, const network_fault& fault) {
    std::optional<http_head> answer;
    bool fresh = false;
    while (!answer) {
      if (fresh) return false;
      // The server may have closed a connection that was idle; a request without a body can be sent again.
      fresh = !client.server || !client.server->open();
      if (fresh) client.server = std::make_unique<proxy_link>(proxy_link::to(server_, stop_.get()));
      proxy_link& server = *client.server;
      const bool has_body = request.chunked() || request.content_length().value_or(0) != 0;
      if (!server.open()) return false;
      if (server.send(request.text()) && pass_body(request, client, &server))
        answer = server.read_head(&client);
      if (!answer) server.close();
      if (!answer && has_body) return false;
    }
    proxy_link& server = *client.server;
    while (answer && answer->status() / 100 == 1) {
      if (!client.send(answer->text())) return false;
      answer = server.read_head(&client);
    }
    if (!answer) return false;

    const std::optional<std::uint64_t> length = answer->content_length();
    const bool has_body = request.word(0) != "HEAD" && answer->status() != 204 && answer->status() != 304;
    lie(*answer, fault);
    faulty_writer out(client, fault, has_body ? length : std::nullopt, bytes_, done_);
    if (!out.begin() || !client.send(answer->text())) return false;
    const auto pass = [&](std::string_view piece) { return out.write(piece); };
    bool lasts = !answer->closes();
    if (!has_body) return out.end() && lasts;
    if (answer->chunked()) {
      if (!server.read_chunked(pass)) return false;
    } else if (length) {
      if (!server.read_body(*length, pass, &client)) return false;
    } else {
      while (server.read_some(pass, &client)) {
      }
      lasts = false;
    }
    if (!out.end()) return false;
    return lasts && fault.kind != fault_kind::longer;
  }

  /// Changes what the head says of the body.
  void lie(http_head& head, const network_fault& fault) {
    const auto length = head.content_length();
    if (fault.kind == fault_kind::longer && length) {
      note(fault.kind);
      head.set("Content-Length", std::to_string(*length + fault.amount));
    }
    if (fault.kind == fault_kind::shorter && length && *length >= fault.amount) {
      note(fault.kind);
      head.set("Content-Length", std::to_string(*length - fault.amount));
    }
    const std::string range = head.field("Content-Range");
    const std::size_t dash = range.find('-'), slash = range.find('/');
    if (fault.kind == fault_kind::wrong_range && range.starts_with("bytes ") && dash < slash) {
      note(fault.kind);
      const auto moved = [&](std::size_t at) {
        return std::to_string(std::strtoull(range.c_str() + at, nullptr, 10) + fault.amount);
      };
      head.set("Content-Range", "bytes " + moved(6) + "-" + moved(dash + 1) + range.substr(slash));
    }
  }

  const std::uint16_t server_;
  const proxy_of what_;
  owned_socket stop_;
  listening_socket here_;
  mutable std::mutex lock_;
  std::list<network_fault> script_;
  std::vector<rule> rules_;
  std::map<std::string, std::uint64_t> times_;
  std::map<std::pair<std::size_t, std::string>, std::uint64_t> met_;
  std::vector<proxied_request> seen_;
  std::atomic<std::uint64_t> accepted_{0}, requests_{0}, bytes_{0};
  fault_counts done_{};
  std::list<connection> connections_;  // the acceptor's, until it has ended
  std::thread acceptor_;
};

}  // namespace penstock_test
