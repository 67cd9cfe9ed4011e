// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/storage/http_error.hpp>
#include <penstock/storage/reads/part_reads.hpp>
#include <penstock/storage/url.hpp>
#include <penstock/storage/web/web_boost.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <exception>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

/// Requests over HTTP, and what storages such as `http` are built upon.
namespace penstock::inline v0_1::detail::web {

using boost::beast::http::verb;

/// What a server answered.
struct answer {
  unsigned status = 0;
  boost::beast::http::fields fields;
  /// The body, if it did not go to a range's memory; at most `call::max_body` bytes.
  std::string body;
  /// The body was larger and was not read.
  bool cut = false;
  /// The length that the server gave, also in the answer to HEAD.
  std::optional<std::uint64_t> length;

  /// The value of a header; "" if there is none.
  [[nodiscard]] std::string_view header(std::string_view name) const {
    const auto found = fields.find(boost::beast::string_view(name.data(), name.size()));
    return found == fields.end() ? std::string_view()
                                 : std::string_view(found->value().data(), found->value().size());
  }
  [[nodiscard]] std::optional<std::chrono::seconds> retry_after() const {
    const std::string_view text = header("Retry-After");
    return text.empty() ? std::nullopt : parse_retry_after(text, std::time(nullptr));
  }
};

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

/// A request, and where its answer goes. The caller owns it and keeps it until `done`; the client calls that
/// once, from its thread, for each call it took. It must neither wait nor destroy the client.
struct call {
  using header = std::pair<std::string, std::string>;
  static constexpr std::uint64_t no_range = ~std::uint64_t{0};

  verb method = verb::get;
  url where;
  /// The name of the object, for errors; it outlives the call. Empty: the URL without its query.
  std::string_view name;
  std::vector<header> headers;
  /// None of them is for another origin; otherwise only those that `client` knows as secrets stay behind.
  bool headers_stay = false;
  std::string body;
  /// With an `offset`, GET asks for `into.size()` bytes from there on. If the server gives exactly these
  /// (206, or 200 if they are the whole object), they go straight to `into`.
  std::uint64_t offset = no_range;
  mutable_bytes into;
  /// A strong ETag, quotes included; it outlives the call.
  std::string_view if_match;
  /// What is known of the object's size; an answer that says otherwise is of
  /// another object.
  std::uint64_t size = no_range;
  std::size_t max_body = 65'536;
  /// Whether Content-Encoding says how an object is stored, as in S3, and not what was done on the way.
  bool stored_encoded = false;
  bool follow_redirects = true;
  /// By what `client::abandon` finds the call; none: it is not found.
  std::optional<std::uint64_t> tag;
  /// Called before each attempt, from the client's thread, with the headers of the request as lines; it may
  /// append lines, each with its "\r\n". After a redirect `been` says so, and nothing may be told to the new
  /// host that is not meant for it.
  void* signer = nullptr;
  void (*sign)(void* signer, const call& what, std::string& lines) = nullptr;

  void* self = nullptr;
  /// `failed` is null if there is an answer, whatever its status.
  void (*done)(void* self, call& what, std::exception_ptr failed) noexcept = nullptr;

  answer reply;

  [[nodiscard]] bool has_range() const noexcept { return offset != no_range; }
  /// The object's name in errors.
  [[nodiscard]] std::string shown() const {
    return name.empty() ? where.without_secrets() : std::string(name);
  }
  /// Puts the facts of this call into an error.
  template <class Error>
  [[nodiscard]] Error&& with_facts(Error&& made) const {
    made.in_file(shown());
    if (has_range()) made.at_offset(offset);
    return std::forward<Error>(made);
  }
  [[nodiscard]] error failure(std::initializer_list<piece> message) const {
    return with_facts(error(errc::io, message));
  }

  // The client's.
  std::uint64_t number = 0;
  std::chrono::steady_clock::time_point begun{};  // redirects and further connections do not change it
  bool replaced = false;                          // its connection had been closed, and it got another one
  std::vector<url> been;                          // where redirects came from
};

/// The error of a call that was ended by `cancel`.
inline std::exception_ptr cancelled(const call& what) noexcept {
  return thrown_by([&] { throw what.with_facts(error(errc::stopped, "the read was cancelled")); });
}

/// Whether a 200 says that it is a range: older gateways of AIStore send 200 where 206 is meant. All facts
/// must agree; a server that ignores ranges has no Content-Range to give.
inline bool is_range_by_200(const answer& reply) {
  if (reply.status != 200 || !reply.length) return false;
  const auto range = parse_content_range(reply.header("Content-Range"));
  return range && range->has_bytes && range->total && *reply.length == range->last - range->first + 1;
}

/// The total length of the object, as an answer to a request for a range gives it.
inline std::optional<std::uint64_t> total_length(const answer& reply) {
  if (reply.status == 200 && !is_range_by_200(reply)) return reply.length;
  const auto range = parse_content_range(reply.header("Content-Range"));
  return range ? range->total : std::nullopt;
}

/// Why the answer 200 or 206 to a request for a range does not hold exactly its bytes; nothing if it does.
inline std::optional<error> range_fault(const call& what) {
  const answer& reply = what.reply;
  const std::uint64_t wanted = what.into.size(), end = what.offset + wanted;
  const auto lie = [&](std::initializer_list<piece> message) {
    return what.with_facts(error(errc::io, message)).recurring();
  };
  const std::string_view encoding = reply.header("Content-Encoding");
  if (!encoding.empty() && encoding != "identity" && !what.stored_encoded)
    return lie({"the server sends the object encoded (Content-Encoding: ", encoding,
                "), so ranges of it mean nothing; store it without, or switch the encoding off"});
  if (reply.status == 200 && !is_range_by_200(reply)) {
    if (what.offset == 0 && reply.length == wanted) return std::nullopt;
    return lie(
        {"the server ignores ranges: it answered 200 with the whole object; switch ranges on at the server "
         "(nginx: max_ranges), or use another one"});
  }
  const std::string_view text = reply.header("Content-Range");
  const auto range = parse_content_range(text);
  if (!range || !range->has_bytes)
    return what.failure(
        {"the server answered 206 without a Content-Range that makes sense: \"", text.substr(0, 80), "\""});
  if (what.size != call::no_range && range->total && *range->total != what.size)
    return lie({"the object was replaced while it was read: it had ", what.size, " bytes, and has ",
                *range->total, "; start again with the new one"});
  if (range->first == what.offset && range->last + 1 < end && range->total == range->last + 1)
    return what.with_facts(error(
        errc::format,
        {"the range of ", wanted, " bytes goes beyond the end of the object, which has ", *range->total}));
  if (range->first != what.offset || range->last + 1 != end)
    return what.failure({"the server sent another range than was asked for: bytes ", range->first, " to ",
                         range->last, ", not ", what.offset, " to ", end - 1});
  if (reply.length && *reply.length != wanted)
    return what.failure({"the server contradicts itself: Content-Length is ", *reply.length,
                         " for a range of ", wanted, " bytes"});
  return std::nullopt;
}

}  // namespace penstock::inline v0_1::detail::web
