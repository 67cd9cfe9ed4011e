// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/catch.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace penstock_test {

/// A port of the loopback that is taken, so that no other test gets it, and on
/// which nothing listens.
class nowhere {
 public:
  nowhere() : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), size) == 0);
    REQUIRE(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/a";
  }
  nowhere(const nowhere&) = delete;
  nowhere& operator=(const nowhere&) = delete;
  ~nowhere() { ::close(socket_); }
  [[nodiscard]] const std::string& url() const noexcept { return url_; }

 private:
  int socket_;
  std::string url_;
};

}  // namespace penstock_test
