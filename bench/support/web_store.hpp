// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/folder.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

/// Servers for benchmarks, and what they are compared with.
namespace bench {

/// The first of these that can be run; empty if none can.
inline std::string program_of(std::initializer_list<const char*> names) {
  for (const char* const name : names)
    if (std::system(("command -v " + std::string(name) + " > /dev/null 2>&1").c_str()) == 0) return name;
  return {};
}
inline std::string nginx_program() { return program_of({"nginx", "/usr/sbin/nginx"}); }

/// A socket, closed at the end.
class connection {
 public:
  explicit connection(int number) : number_(number) {
    if (number_ < 0) throw std::runtime_error("no socket");
  }
  connection(connection&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  connection& operator=(connection&&) = delete;
  ~connection() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int get() const { return number_; }

  static connection to(std::uint16_t port) {
    connection made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in there = on_loopback(port);
    if (::connect(made.get(), reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0)
      throw std::runtime_error("cannot connect");
    const int one = 1;
    ::setsockopt(made.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return made;
  }
  static connection listening() {
    connection made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in here = on_loopback(0);
    if (::bind(made.get(), reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0 ||
        ::listen(made.get(), 256) != 0)
      throw std::runtime_error("cannot listen");
    return made;
  }
  [[nodiscard]] std::uint16_t port() const {
    sockaddr_in here{};
    socklen_t size = sizeof here;
    ::getsockname(number_, reinterpret_cast<sockaddr*>(&here), &size);
    return ntohs(here.sin_port);
  }
  void send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(number_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) throw std::runtime_error("send failed");
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

 private:
  static sockaddr_in on_loopback(std::uint16_t port) {
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = htons(port);
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return there;
  }
  int number_;
};

/// nginx on loopback, without a log, for the files of a folder.
class web_store {
 public:
  explicit web_store(const folder& files) : port_(connection::listening().port()) {
    const std::string here = std::filesystem::absolute(files.path()).string();
    {
      std::ofstream out(files.file("nginx.conf"));
      out << "daemon off; master_process off; pid " << here << "/nginx.pid; error_log " << here
          << "/nginx.log;\n"
             "events { worker_connections 1024; }\nhttp { access_log off; sendfile on; tcp_nodelay on;\n"
             "keepalive_requests 100000000; default_type application/octet-stream; open_file_cache "
             "max=100;\n";
      for (const char* const kind : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"})
        out << kind << "_temp_path " << here << "/nginx_" << kind << ";\n";
      out << "server { listen 127.0.0.1:" << port_ << " backlog=512; root " << here << "; } }\n";
    }
    const std::string program = nginx_program(), configuration = here + "/nginx.conf";
    child_ = ::fork();
    if (child_ == 0) {
      ::execlp(program.c_str(), "nginx", "-p", here.c_str(), "-c", configuration.c_str(),
               static_cast<char*>(nullptr));
      ::_exit(127);
    }
    for (int i = 0; i < 500; ++i) {
      try {
        (void)connection::to(port_);
        return;
      } catch (const std::exception&) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
    throw std::runtime_error("nginx does not start");
  }
  web_store(const web_store&) = delete;
  web_store& operator=(const web_store&) = delete;
  ~web_store() {
    ::kill(child_, SIGTERM);
    ::waitpid(child_, nullptr, 0);
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  std::uint16_t port_;
  pid_t child_ = -1;
};

/// A proxy in a process of its own that passes bytes on, and each request a given time after its arrival.
class delaying_proxy {
 public:
  delaying_proxy(std::uint16_t server, std::chrono::milliseconds delay)
      : listens_(connection::listening()), port_(listens_.port()) {
    child_ = ::fork();
    if (child_ != 0) return;
    for (;;) {
      const int client = ::accept(listens_.get(), nullptr, nullptr);
      if (client >= 0) std::thread([=] { pass(client, server, delay); }).detach();
    }
  }
  delaying_proxy(const delaying_proxy&) = delete;
  delaying_proxy& operator=(const delaying_proxy&) = delete;
  ~delaying_proxy() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  static void pass(int from, std::uint16_t server, std::chrono::milliseconds delay) noexcept try {
    const connection client(from), there = connection::to(server);
    std::vector<char> bytes(1 << 18);
    for (;;) {
      pollfd both[] = {{client.get(), POLLIN, 0}, {there.get(), POLLIN, 0}};
      if (::poll(both, 2, -1) < 0) return;
      for (int i = 0; i < 2; ++i) {
        if (both[i].revents == 0) continue;
        const ssize_t got = ::recv(both[i].fd, bytes.data(), bytes.size(), 0);
        if (got <= 0) return;
        if (i == 0) std::this_thread::sleep_for(delay);  // a request is one piece
        (i == 0 ? there : client).send({bytes.data(), static_cast<std::size_t>(got)});
      }
    }
  } catch (const std::exception&) {
  }

  connection listens_;
  std::uint16_t port_;
  pid_t child_ = -1;
};

/// A range of a file of the store.
struct web_range {
  std::string path;
  std::uint64_t offset, size;
};

/// Requests ranges one after another, reads what comes and forgets it. Each read goes to the next place of
/// `bytes`, and after the last one to the first again.
inline std::uint64_t discard(std::uint16_t port, const std::vector<web_range>& ranges, std::size_t first,
                             std::size_t step, std::vector<char>& bytes) {
  constexpr std::size_t block_size = 1 << 18;
  const connection there = connection::to(port);
  if (bytes.size() < block_size) bytes.resize(block_size);
  std::uint64_t sum = 0;
  std::size_t place = 0;
  for (std::size_t i = first; i < ranges.size(); i += step) {
    const web_range& one = ranges[i];
    there.send("GET " + one.path + " HTTP/1.1\r\nHost: a\r\nRange: bytes=" + std::to_string(one.offset) +
               "-" + std::to_string(one.offset + one.size - 1) + "\r\n\r\n");
    std::uint64_t left = ~std::uint64_t{0};
    std::string head;
    while (left != 0) {
      if (place + block_size > bytes.size()) place = 0;
      char* const into = bytes.data() + place;
      const ssize_t got = ::recv(there.get(), into, block_size, 0);
      if (got <= 0) throw std::runtime_error("recv failed");
      place += static_cast<std::size_t>(got);
      auto came = static_cast<std::uint64_t>(got);
      if (left == ~std::uint64_t{0}) {
        head.append(into, static_cast<std::size_t>(got));
        const std::size_t end = head.find("\r\n\r\n");
        if (end == std::string::npos) continue;
        if (head.compare(9, 3, "206") != 0) throw std::runtime_error(head.substr(0, 40));
        left = one.size;
        came = head.size() - end - 4;
      }
      left -= came;
      sum += came;
    }
  }
  return sum;
}

/// Seconds of processor time that this process has used.
inline double processor_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

}  // namespace bench
