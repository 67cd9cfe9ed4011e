// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<asio/version.hpp>)
#error "penstock/integration/detail/rank_pages.hpp needs standalone Asio: link penstock::asio"
#endif

#include <penstock/integration/detail/http_server.hpp>
#include <penstock/integration/detail/merged_pages.hpp>
#include <penstock/integration/detail/watched_runs.hpp>
#include <penstock/integration/serve_metrics.hpp>

#include <asio/buffer.hpp>
#include <asio/completion_condition.hpp>
#include <asio/read.hpp>

#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <vector>

namespace penstock::inline v0_1::detail {

/// The name of this machine.
[[nodiscard]] inline std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) throw error(errc::io, "the name of this machine is unknown");
  return name;
}

/// What processes have alike that reach one another by loopback: the machine, and its network namespace.
[[nodiscard]] inline std::string network_name() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  char space[64] = {};
  const auto length = ::readlink("/proc/self/ns/net", space, sizeof space);
  return boot + (length > 0 ? std::string(space, static_cast<std::size_t>(length)) : host_name());
}

/// Where the ranks from 1 serve, by what each says: "<name or address> <port>".
[[nodiscard]] inline std::vector<::asio::ip::tcp::endpoint> endpoints_of(
    const std::vector<std::string>& said) {
  std::vector<::asio::ip::tcp::endpoint> made;
  ::asio::io_context io;
  ::asio::ip::tcp::resolver names(io);
  for (std::size_t i = 1; i < said.size(); ++i) {
    const std::size_t space = said[i].find(' ');
    const std::string host = said[i].substr(0, space), port = said[i].substr(space + 1);
    std::error_code failed;
    auto address = ::asio::ip::make_address(host, failed);
    if (failed) {  // a name; the ranks that have one serve on addresses of version 4
      const auto found = names.resolve(::asio::ip::tcp::v4(), host, port, failed);
      if (failed || found.empty())
        throw error(errc::io, {"rank 0 finds no address of \"", host, "\", where rank ", i,
                               " is; give that rank a .rank_address that rank 0 can reach"});
      address = found.begin()->endpoint().address();
    }
    made.emplace_back(address, static_cast<std::uint16_t>(std::atoi(port.c_str())));
  }
  return made;
}

/// Gets one page of another server. All of it happens in the context's thread.
class http_fetch : public std::enable_shared_from_this<http_fetch> {
 public:
  using handler = callback<const std::string*>;  ///< called once; null: it could not be had

  http_fetch(::asio::io_context& io, std::string_view path, std::string_view token, handler done)
      : socket_(io), done_(std::move(done)) {
    append(request_, {"GET ", path, " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ", token,
                      "\r\nConnection: close\r\n\r\n"});
  }

  void start(const ::asio::ip::tcp::endpoint& where) {
    socket_.async_connect(where, [it = shared_from_this()](const std::error_code& failed) {
      if (failed) return it->end(nullptr);
      ::asio::async_write(it->socket_, ::asio::buffer(it->request_),
                          [it](const std::error_code& unsent, std::size_t) {
                            if (unsent) return it->end(nullptr);
                            it->read();
                          });
    });
  }
  void cut() noexcept {
    std::error_code ignored;
    socket_.close(ignored);
  }

 private:
  static constexpr std::size_t max_page = std::size_t{64} << 20;

  void read() {
    ::asio::async_read(socket_, ::asio::dynamic_buffer(got_, max_page), ::asio::transfer_all(),
                       [it = shared_from_this()](const std::error_code& ended, std::size_t) {
                         const std::string_view all = it->got_;
                         const std::size_t head = all.find("\r\n\r\n"),
                                           length = all.find("\r\nContent-Length: ");
                         std::size_t promised = 0;
                         if (length < head)
                           for (std::size_t i = length + 18; i < head && all[i] >= '0' && all[i] <= '9'; ++i)
                             promised = promised * 10 + static_cast<std::size_t>(all[i] - '0');
                         if (ended != ::asio::error::eof || !all.starts_with("HTTP/1.1 200 ") ||
                             head == std::string_view::npos || all.size() - head - 4 != promised)
                           return it->end(nullptr);
                         it->got_.erase(0, head + 4);
                         it->end(&it->got_);
                       });
  }
  void end(const std::string* body) {
    cut();
    done_(body);
  }

  ::asio::ip::tcp::socket socket_;
  handler done_;
  std::string request_, got_;
};

/// The handler of the server of another rank, for rank 0: what `look` says, and the page.
inline http_connection::handler look_handler(std::shared_ptr<watched_runs> runs) {
  return [runs = std::move(runs)](const http_request& asked, const http_server::reply& answer,
                                  ::asio::io_context&) {
    if (asked.path != "/look")
      return answer({.status = 404, .body = "the metrics are on the page of rank 0\n"});
    const watched_runs::glance seen = runs->look();
    answer({.body = text({number_text(seen.stall), " ", number_text(seen.seconds), " ", seen.why, "\n",
                          runs->page()})});
  };
}

/// The runs of all ranks, as the server of rank 0 shows them: fetches the pages of the others when it is
/// asked and what it has is old, from all at once, and does without those that do not answer in time. It is
/// used in the server's thread only.
class rank_pages : public std::enable_shared_from_this<rank_pages> {
 public:
  struct options {
    std::string token;  ///< of the others' servers
    std::chrono::milliseconds deadline = std::chrono::seconds(2), fresh = std::chrono::seconds(1);
  };

  /// In: where each of the other ranks, from 1, serves.
  rank_pages(std::shared_ptr<watched_runs> own, std::vector<::asio::ip::tcp::endpoint> others, options how)
      : own_(std::move(own)), where_(std::move(others)), how_(std::move(how)), ranks_(where_.size() + 1) {}

  /// Answers as the server of rank 0.
  void handle(const http_request& asked, const http_server::reply& answer, ::asio::io_context& io) {
    // Neither what waits nor a fetch keeps this alive: a server that ends meanwhile would leave it behind.
    const auto reply = [this, asked, answer] {
      if (asked.path == "/slowest") return answer({.body = slowest()});
      answer(metrics_answer(asked, [&] { return page(); }));
    };
    if (asked.path != "/metrics" && asked.path != "/slowest") return reply();
    if (!fetches_.empty()) return waiting_.push_back(reply);
    if (looked_ && std::chrono::steady_clock::now() - *looked_ < how_.fresh) return reply();
    waiting_.push_back(reply);
    begin(io);
  }

 private:
  struct rank {
    watched_runs::glance seen;
    std::string page;
    bool up = false;
  };
  static constexpr std::size_t max_fetches = 128;  ///< connections to other ranks

  void begin(::asio::io_context& io) {
    ranks_.assign(ranks_.size(), {});
    ranks_[0] = {own_->look(), own_->page(), true};
    next_ = 0;
    left_ = where_.size();
    if (left_ == 0) return end();
    fetches_.assign(where_.size(), nullptr);
    timer_.emplace(io, how_.deadline);
    timer_->async_wait([it = weak_from_this()](const std::error_code& failed) {
      const auto pages = it.lock();
      if (failed || !pages || pages->timer_->expiry() > std::chrono::steady_clock::now()) return;
      pages->left_ -= pages->fetches_.size() - std::exchange(pages->next_, pages->fetches_.size());
      for (const auto& one : pages->fetches_)
        if (one) one->cut();
    });
    while (next_ < std::min(max_fetches, where_.size())) fetch_next(io);
  }
  void fetch_next(::asio::io_context& io) {
    const std::size_t i = next_++;
    fetches_[i] = std::make_shared<http_fetch>(io, "/look", how_.token,
                                               [weak = weak_from_this(), i, &io](const std::string* body) {
                                                 const auto it = weak.lock();
                                                 if (!it) return;
                                                 if (body != nullptr) it->take(it->ranks_[i + 1], *body);
                                                 it->fetches_[i] = nullptr;
                                                 if (it->next_ < it->fetches_.size()) it->fetch_next(io);
                                                 if (--it->left_ == 0) it->end();
                                               });
    fetches_[i]->start(where_[i]);
  }
  static void take(rank& into, const std::string& body) {
    const std::size_t line = std::min(body.find('\n'), body.size());
    // Not strtod, which reads these numbers as the program's locale writes them.
    const char* const end = body.data() + line;
    const char* at = std::from_chars(body.data(), end, into.seen.stall).ptr;
    at = std::from_chars(at + (at != end), end, into.seen.seconds).ptr;
    into.seen.why.assign(at + (at != end), end);
    into.page = body.substr(std::min(body.size(), line + 1));
    into.up = true;
  }
  void end() {
    looked_ = std::chrono::steady_clock::now();
    fetches_.clear();
    timer_.reset();
    for (const auto& reply : std::exchange(waiting_, {})) reply();
  }

  [[nodiscard]] std::string page() const {
    std::vector<std::string_view> pages;
    std::string up =
        "# HELP penstock_rank_up Whether the rank answered rank 0 in time.\n"
        "# TYPE penstock_rank_up gauge\n";
    std::string stall =
        "# HELP penstock_rank_stall_ratio The part of its time that the rank waited for data "
        "since the last look.\n# TYPE penstock_rank_stall_ratio gauge\n";
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const rank& one = ranks_[i];
      append(up, {"penstock_rank_up{rank=\"", i, "\"} ", one.up ? 1 : 0, "\n"});
      if (!one.up) continue;
      pages.push_back(one.page);
      append(stall, {"penstock_rank_stall_ratio{rank=\"", i, "\"} ", number_text(one.seen.stall), "\n"});
    }
    return text({merged_pages(pages), up, stall,
                 "# HELP penstock_slowest_rank The rank that waited longest since the last look, of those "
                 "that answered.\n# TYPE penstock_slowest_rank gauge\npenstock_slowest_rank ",
                 slowest_rank(), "\n# ", slowest()});
  }
  [[nodiscard]] std::size_t slowest_rank() const {
    std::size_t most = 0;
    for (std::size_t i = 1; i < ranks_.size(); ++i)
      if (ranks_[i].up && ranks_[i].seen.stall > ranks_[most].seen.stall) most = i;
    return most;
  }
  [[nodiscard]] std::string slowest() const {
    const std::size_t most = slowest_rank();
    const watched_runs::glance& seen = ranks_[most].seen;
    if (seen.stall <= 0) return "no rank waited for its data since the last look\n";
    return text({"rank ", most, " waited longest for its data: ", std::lround(seen.stall * 100),
                 " % of the last ", in_seconds(seen.seconds), "; ", seen.why, "\n"});
  }

  const std::shared_ptr<watched_runs> own_;
  const std::vector<::asio::ip::tcp::endpoint> where_;
  const options how_;
  std::vector<rank> ranks_;
  std::vector<std::shared_ptr<http_fetch>> fetches_;  ///< while it fetches; those that have ended are null
  std::size_t next_ = 0, left_ = 0;                   ///< fetches: to begin next, to end
  std::vector<callback<>> waiting_;
  std::optional<std::chrono::steady_clock::time_point> looked_;
  std::optional<::asio::steady_timer> timer_;
};

}  // namespace penstock::inline v0_1::detail
