// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

namespace penstock_test {

enum class fault_kind : std::uint8_t {
  none,
  stall,        ///< sends nothing for a time
  throttle,     ///< sends slowly
  cut,          ///< closes the connection
  reset,        ///< closes the connection with RST
  flip,         ///< changes one bit of one byte of the body
  answer,       ///< answers itself; the server gets no request
  longer,       ///< Content-Length says more than comes; then the connection ends
  shorter,      ///< Content-Length says less than comes
  wrong_range,  ///< Content-Range names another place
  whole,        ///< the whole object with 200, though a range was requested
  close_idle,   ///< closes a connection that has been used when its next request arrives
  silent,       ///< takes the request and never answers
};
inline constexpr std::size_t fault_kinds = static_cast<std::size_t>(fault_kind::silent) + 1;

/// What a `fault_proxy` does to one request, or to one connection whose bytes it does not look at.
///
/// Places are offsets in the body of the answer (of a connection: in all that the server sends). A place at
/// or beyond the end of a body whose length is known means its middle, so that one fault fits bodies of any
/// length.
struct network_fault {
  fault_kind kind = fault_kind::none;
  std::uint64_t at = 0;
  bool before_answer = false;  ///< instead of `at`: before the first byte of the head
  std::uint64_t amount = 0;
  std::chrono::milliseconds time{0};  ///< of a stall; 0: until the client gives up
  std::string text;                   ///< of an answer: all of it

  static network_fault none() { return {}; }
  /// Waits before the first byte.
  static network_fault delay(std::chrono::milliseconds time) {
    network_fault made = of(fault_kind::stall);
    made.before_answer = true;
    made.time = time;
    return made;
  }
  /// Waits after `at` bytes: for a time, or until the client gives up.
  static network_fault stall(std::uint64_t at, std::chrono::milliseconds time = {}) {
    network_fault made = of(fault_kind::stall, at);
    made.time = time;
    return made;
  }
  static network_fault throttle(std::uint64_t bytes_per_second) {
    return of(fault_kind::throttle, 0, bytes_per_second);
  }
  static network_fault cut(std::uint64_t at) { return of(fault_kind::cut, at); }
  static network_fault reset(std::uint64_t at) { return of(fault_kind::reset, at); }
  /// The server has done what was requested, and the client never learns of it.
  static network_fault cut_before_answer() { return before(fault_kind::cut); }
  static network_fault reset_before_answer() { return before(fault_kind::reset); }
  static network_fault flip(std::uint64_t at) { return of(fault_kind::flip, at); }
  /// An answer with further lines of head, each with its line break, and a body.
  static network_fault answer(int status, const std::string& reason, const std::string& lines = {},
                              const std::string& body = {}) {
    network_fault made = of(fault_kind::answer);
    made.text = "HTTP/1.1 " + std::to_string(status) + " " + reason + "\r\n" + lines +
                "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    return made;
  }
  static network_fault server_error() { return answer(500, "Internal Server Error"); }
  static network_fault unavailable() { return answer(503, "Service Unavailable"); }
  /// What S3 says to clients that request too much.
  static network_fault slow_down() {
    return answer(503, "Slow Down", "Content-Type: application/xml\r\n",
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>SlowDown</Code>"
                  "<Message>Please reduce your request rate.</Message><RequestId>0</RequestId></Error>");
  }
  static network_fault too_many(int retry_after_seconds) {
    return answer(429, "Too Many Requests", "Retry-After: " + std::to_string(retry_after_seconds) + "\r\n");
  }
  static network_fault longer(std::uint64_t bytes = 1) { return of(fault_kind::longer, 0, bytes); }
  static network_fault shorter(std::uint64_t bytes = 1) { return of(fault_kind::shorter, 0, bytes); }
  /// Moves the range that the head names by some bytes.
  static network_fault wrong_range(std::uint64_t bytes = 1) { return of(fault_kind::wrong_range, 0, bytes); }
  static network_fault whole() { return of(fault_kind::whole); }
  /// For the first request of a connection: at its next one.
  static network_fault close_idle() { return of(fault_kind::close_idle); }
  static network_fault silent() { return of(fault_kind::silent); }

 private:
  static network_fault of(fault_kind kind, std::uint64_t at = 0, std::uint64_t amount = 0) {
    network_fault made;
    made.kind = kind;
    made.at = at;
    made.amount = amount;
    return made;
  }
  static network_fault before(fault_kind kind) {
    network_fault made = of(kind);
    made.before_answer = true;
    return made;
  }
};

}  // namespace penstock_test
