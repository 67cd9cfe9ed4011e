// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/web/web_call.hpp>

#include <algorithm>
#include <cstring>
#include <limits>

namespace penstock::inline v0_1::detail::web {

/// Takes the bytes of answers apart as they arrive: the header, and a body in chunks or up to the end of the
/// connection. Bytes that came with the header of a body whose length is known are handed out.
///
/// `room`, then `arrived`, then `read_head` or `read_body`, until it does not want `more`.
class answer_reader {
  using head_parser = boost::beast::http::response_parser<boost::beast::http::empty_body>;
  using body_parser = boost::beast::http::response_parser<boost::beast::http::string_body>;
  static constexpr std::uint32_t max_header = 32'768;
  static constexpr std::size_t read_size = 4096;

 public:
  static constexpr std::size_t max_buffered = 65'536;
  enum class state : std::uint8_t {
    done,
    more,
    malformed,    ///< `fault` says why
    overflowing,  ///< a header, or that of a chunk, that does not end
    too_long,     ///< a body of more bytes than were allowed
  };

  /// Begins with the next answer; bytes that are left belong to it. That of HEAD has no body.
  void begin(bool without_body) {
    body_.reset();
    next_head(without_body);
  }
  [[nodiscard]] net::mutable_buffer room() { return in_.prepare(read_size); }
  void arrived(std::size_t size) { in_.commit(size); }
  /// How many bytes wait to be taken.
  [[nodiscard]] std::size_t waiting() const noexcept { return in_.size(); }

  /// Headers of provisional answers (1xx) are skipped.
  [[nodiscard]] state read_head() {
    for (;;) {
      fault_ = {};
      in_.consume(head_->put(in_.cdata(), fault_));
      if (fault_ == boost::beast::http::error::need_more) fault_ = {};
      if (fault_) return state::malformed;
      if (!head_->is_header_done()) return if_room();
      const unsigned now = status();
      if (now < 100) {  // the parser wants three digits, whatever they are
        fault_ = boost::beast::http::error::bad_status;
        return state::malformed;
      }
      if (now >= 200 || now == 101) return state::done;
      next_head(without_body_);
      if (in_.size() == 0) return state::more;
    }
  }
  [[nodiscard]] const error_code& fault() const noexcept { return fault_; }
  /// Whether what waits is an alert of TLS: its type, and the first byte of its version.
  [[nodiscard]] bool is_tls() const noexcept {
    const auto* const bytes = static_cast<const unsigned char*>(in_.cdata().data());
    return in_.size() >= 2 && bytes[0] == 0x15 && bytes[1] == 0x03;
  }

  // ---- After the header

  [[nodiscard]] unsigned status() const { return head_->get().result_int(); }
  /// Whether no body follows.
  [[nodiscard]] bool is_done() const { return head_->is_done(); }
  /// Whether the other side keeps the connection.
  [[nodiscard]] bool keeps() const { return head_->keep_alive(); }
  /// Puts the header into an answer. Returns whether a body follows whose length it does not say.
  [[nodiscard]] bool take_head(answer& into) {
    into.status = status();
    if (const auto length = head_->content_length()) into.length = *length;
    const bool unknown = head_->chunked() || (!head_->is_done() && !into.length);
    // The parser of a body that has to be unpacked needs the header; of all others it goes to the answer.
    if (!head_->is_done() && unknown)
      into.fields = head_->get();
    else
      into.fields = std::move(static_cast<boost::beast::http::fields&>(head_->get()));
    return unknown;
  }
  /// Moves bytes that came with the header to their place. Returns how many.
  [[nodiscard]] std::size_t take(mutable_bytes into) {
    const std::size_t here = std::min(in_.size(), into.size());
    if (here != 0) std::memcpy(into.data(), in_.cdata().data(), here);
    in_.consume(here);
    return here;
  }

  // ---- A body in chunks, or up to the end of the connection

  void begin_body(std::size_t maximum) {
    body_.emplace(std::move(*head_));
    body_->body_limit(maximum);
    body_->eager(true);
  }
  [[nodiscard]] state read_body() {
    while (!body_->is_done() && in_.size() != 0) {
      fault_ = {};
      const std::size_t used = body_->put(in_.cdata(), fault_);
      in_.consume(used);
      if (fault_ == boost::beast::http::error::need_more) break;
      if (fault_ == boost::beast::http::error::body_limit) return state::too_long;
      if (fault_) return state::malformed;
      if (used == 0) break;
    }
    return body_->is_done() ? state::done : if_room();
  }
  /// The connection has ended. Returns whether the body had, too.
  [[nodiscard]] bool end_body() {
    fault_ = {};
    body_->put_eof(fault_);
    return !fault_;
  }
  /// Whether there is one, and its bytes so far.
  [[nodiscard]] bool has_body() const noexcept { return body_.has_value(); }
  [[nodiscard]] std::string& body() { return body_->get().body(); }

 private:
  void next_head(bool without_body) {
    head_.emplace();
    head_->header_limit(max_header);
    // none would refuse every body in Boost 1.74
    head_->body_limit(std::numeric_limits<std::uint64_t>::max());
    head_->skip(without_body);
    without_body_ = without_body;
  }
  [[nodiscard]] state if_room() const noexcept {
    return in_.size() + read_size > max_buffered ? state::overflowing : state::more;
  }

  boost::beast::flat_buffer in_{max_buffered};
  std::optional<head_parser> head_;
  std::optional<body_parser> body_;
  error_code fault_;
  bool without_body_ = false;
};

}  // namespace penstock::inline v0_1::detail::web
