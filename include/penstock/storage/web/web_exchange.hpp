// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/to_size.hpp>
#include <penstock/core/version.hpp>
#include <penstock/storage/web/web_call.hpp>
#include <penstock/storage/web/web_connection.hpp>

namespace penstock::inline v0_1::detail::web {

/// Writes the header of a request. `by`: the proxy that is given the whole URL, null if there is none.
inline void write_head(std::string& out, const call& what, const http_proxy* by) {
  const auto method = boost::beast::http::to_string(what.method);
  out.assign(method.data(), method.size());
  append(out, {" ", by != nullptr ? what.where.text() : what.where.target(), " HTTP/1.1\r\n"});
  const std::size_t lines = out.size();
  append(out, {"Host: ", what.where.authority(), "\r\nUser-Agent: penstock/", version_major, ".",
               version_minor, ".", version_patch, "\r\nAccept-Encoding: identity\r\n"});
  if (what.has_range())
    append(out, {"Range: bytes=", what.offset, "-", what.offset + what.into.size() - 1, "\r\n"});
  if (!what.if_match.empty()) append(out, {"If-Match: ", what.if_match, "\r\n"});
  if (!what.body.empty() || what.method == verb::put || what.method == verb::post)
    append(out, {"Content-Length: ", what.body.size(), "\r\n"});
  for (const auto& [name, value] : what.headers) {
    constexpr std::string_view breaks("\r\n\0", 3);
    if (name.find_first_of(breaks) != std::string::npos || value.find_first_of(breaks) != std::string::npos)
      throw error(errc::argument, "a header of a request has a line break in its name or value");
    append(out, {name, ": ", value, "\r\n"});
  }
  if (by != nullptr && !by->authorization.empty())
    append(out, {"Proxy-Authorization: ", by->authorization, "\r\n"});
  if (what.sign != nullptr) {
    std::string with_signature = out.substr(lines);
    what.sign(what.signer, what, with_signature);
    out.replace(lines, std::string::npos, with_signature);
  }
  out += "\r\n";
}

/// How a call ended for its connection.
enum class ending : std::uint8_t {
  reusable,  ///< the next call may use it
  closed,    ///< it may not
  stale,     ///< the server had closed it before; the call has not begun
};

/// One connection that does one call after another. The header of an answer is read into a small buffer; the
/// bytes of a range go from the socket to their place, but for those that came with the header.
class exchange : public transport<exchange> {
  friend transport<exchange>;
  using state = answer_reader::state;

 public:
  /// Is told when a call has ended; `self` outlives all connections.
  struct listener {
    void* self;
    void (*ended)(void* self, const std::shared_ptr<exchange>& by, call& what, std::exception_ptr failed,
                  ending how);
  };

  exchange(common& all, const url& origin, const http_proxy* proxy, listener told)
      : transport(all, origin, proxy), told_(told) {}

  void start(call& what) {
    call_ = &what;
    if (what.begun == clock::time_point{}) what.begun = clock::now();
    begun_ = what.begun;
    answered_at_ = clock::time_point::max();
    guard([&] { started_ ? send() : open(); });
  }
  /// Ends what has lasted too long, or brings too little.
  void check_time(clock::time_point now) {
    const http_options& limits = all_.options;
    if (now - begun_ >= longest_time()) return this->abandon(reason::too_long);
    if (answered_at_ <= now && now - window_at_ >= limits.throughput_window) {
      if (bytes_per_second(window_bytes_, now - window_at_) < static_cast<double>(limits.min_throughput))
        return this->abandon(reason::too_slow);
      window_at_ = now;
      window_bytes_ = 0;
    }
    transport::check_time(now);
  }
  /// Why the call has been waiting for longer than `warn_after`; "" if it has not, or its answer is coming.
  [[nodiscard]] std::string trouble(clock::time_point now) const {
    const http_options& limits = all_.options;
    if (now - begun_ < limits.warn_after + body_time()) return {};
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - begun_).count();
    if (!started_) return detail::text({"no connection for ", seconds, " s"});
    if (answered_at_ > now) return detail::text({"no answer for ", seconds, " s"});
    if (bytes_per_second(answer_bytes_, now - answered_at_) >= static_cast<double>(limits.min_throughput))
      return {};
    return detail::text({answer_bytes_, " bytes came in ", seconds, " s"});
  }
  [[nodiscard]] bool is_idle() const noexcept { return call_ == nullptr; }
  [[nodiscard]] const call* doing() const noexcept { return call_; }
  [[nodiscard]] clock::time_point idle_since() const noexcept { return idle_since_; }

 private:
  [[nodiscard]] const call& current() const noexcept { return *call_; }
  /// What a body on its way gets: a millisecond for 256 bytes.
  [[nodiscard]] std::chrono::milliseconds body_time() const {
    return std::chrono::milliseconds(call_->body.size() / 256);
  }
  /// `max_time`, and what the bytes get that go either way: a millisecond for 16 bytes of a range.
  [[nodiscard]] std::chrono::milliseconds longest_time() const {
    return all_.options.max_time + body_time() + std::chrono::milliseconds(call_->into.size() / 16);
  }
  [[nodiscard]] static double bytes_per_second(std::uint64_t bytes, clock::duration time) {
    return static_cast<double>(bytes) / std::max(1e-9, std::chrono::duration<double>(time).count());
  }
  void came(std::size_t bytes) noexcept {
    answer_bytes_ += bytes;
    window_bytes_ += bytes;
  }

  // ---- Sending

  void ask_for_tunnel() {
    in_tunnel_ = true;
    const std::string to =
        detail::text({origin_.host.find(':') == std::string::npos ? origin_.host : "[" + origin_.host + "]",
                      ":", origin_.port_number()});
    out_ = detail::text({"CONNECT ", to, " HTTP/1.1\r\nHost: ", to, "\r\n"});
    if (!proxy_->authorization.empty())
      detail::append(out_, {"Proxy-Authorization: ", proxy_->authorization, "\r\n"});
    out_ += "\r\n";
    begin_answer(true);
    write({net::buffer(out_), net::const_buffer()}, then(&exchange::sent));
  }
  void opened() {
    started_ = true;
    send();
  }
  void send() {
    sent_at_ = clock::now();
    head_until_ = sent_at_ + all_.options.first_byte_time + body_time();
    wait_until(head_until_, reason::first_byte_late);
    write_head(out_, *call_, asks_proxy() ? proxy_ : nullptr);
    all_.counted.requests.fetch_add(1, std::memory_order_relaxed);
    begin_answer(call_->method == verb::head);
    if (call_->body.empty()) return write({net::buffer(out_), net::const_buffer()}, then(&exchange::sent));
    // A server may answer before it has the whole body, and read no more of it. So the answer is awaited at
    // once, and ends the call; that the body could not be written says nothing more.
    write({net::buffer(out_), net::buffer(call_->body)},
          [self = shared_from_this()](const error_code&, std::size_t) { self->written(); });
    writing_ = true;
    read_head();
  }
  void written() {
    writing_ = false;
    if (const auto over = std::exchange(answered_, std::nullopt)) end(over->first, over->second);
  }
  void sent(const error_code& code, std::size_t) {
    if (code) return failed(code);
    read_head();
  }

  // ---- The header of an answer

  void begin_answer(bool without_body) {
    call_->reply = {};
    got_byte_ = in_range_ = false;
    in_.begin(without_body);
  }
  void read_head() { read_some(in_.room(), then(&exchange::got_head)); }
  void got_head(const error_code& code, std::size_t size) {
    if (code) return failed(code);
    in_.arrived(size);
    if (!got_byte_ && in_.is_tls())
      return failed_with(call_->failure({"the server speaks TLS at this port; write https://"}).recurring());
    got_byte_ = true;
    const auto stalled = clock::now() + all_.options.progress_time;
    if (!in_tunnel_ && stalled < head_until_) wait_until(stalled, reason::progress_late);
    if (!in_tunnel_ && stalled >= head_until_) wait_until(head_until_, reason::first_byte_late);
    switch (in_.read_head()) {
      case state::more:
        return read_head();
      case state::malformed:
        return malformed();
      case state::overflowing:
      case state::too_long:
        return failed_with(call_->failure(
            {"the server sent a header of more than ", answer_reader::max_buffered, " bytes"}));
      case state::done:
        return in_tunnel_ ? tunnel_answered(in_.status()) : header_complete();
    }
  }
  void tunnel_answered(unsigned status) {
    in_tunnel_ = false;
    if (status / 100 != 2 || in_.waiting() != 0) {
      http_error made = answer_error(status);
      if (status != 407)
        return failed_with(call_
                               ->with_facts(error(errc::io, {"the proxy ", proxy_->where.authority(),
                                                             " opened no tunnel (", status, ")"}))
                               .recurring(!may_pass(status)));
      return failed_with(call_->with_facts(std::move(made)));
    }
    secure();
  }
  void header_complete() {
    answer& reply = call_->reply;
    answered_at_ = window_at_ = clock::now();
    answer_bytes_ = window_bytes_ = in_.waiting();
    wait_until(answered_at_ + all_.options.progress_time, reason::progress_late);
    keep_ = in_.keeps();
    const bool done = in_.is_done(), unknown = in_.take_head(reply);
    const unsigned status = reply.status;
    if (status == 429 || status == 503) all_.counted.slow_downs.fetch_add(1, std::memory_order_relaxed);
    if (call_->has_range() && call_->method == verb::get && (status == 200 || status == 206)) {
      if (const auto fault = range_fault(*call_)) return failed_with(*fault);
      in_range_ = true;
      if (!unknown) return read_place(call_->into);
    }
    if (done) return complete();
    if (unknown) {  // a body in chunks, or up to the end of the connection
      in_.begin_body(in_range_ ? call_->into.size() : call_->max_body);
      return parse_body();
    }
    if (*reply.length > call_->max_body) {
      reply.cut = true;
      keep_ = false;
      return complete();
    }
    reply.body.resize(to_size(*reply.length));
    read_place(std::as_writable_bytes(std::span(reply.body)));
  }

  // ---- Bodies

  void read_place(mutable_bytes place) {
    place_ = place.subspan(in_.take(place));
    continue_place();
  }
  void continue_place() {
    if (place_.empty()) return complete();
    read_some(net::buffer(place_.data(), place_.size()), then(&exchange::got_place));
  }
  void got_place(const error_code& code, std::size_t size) {
    if (code) return failed(code);
    place_ = place_.subspan(size);
    came(size);
    wait_until(clock::now() + all_.options.progress_time, reason::progress_late);
    continue_place();
  }

  void parse_body() {
    switch (in_.read_body()) {
      case state::more:
        return read_some(in_.room(), then(&exchange::got_body));
      case state::malformed:
        return malformed();
      case state::too_long:
        return too_long();
      case state::overflowing:
        return failed_with(call_->failure({"the server sent a chunk whose header is too long"}));
      case state::done:
        return unknown_complete();
    }
  }
  void got_body(const error_code& code, std::size_t size) {
    // Over TLS, only a range shows by its size whether somebody else has ended the connection.
    if (code == net::error::eof || (code == net::ssl::error::stream_truncated && call_->has_range())) {
      if (!in_.end_body()) return failed(code);
      keep_ = false;
      return unknown_complete();
    }
    if (code) return failed(code);
    in_.arrived(size);
    came(size);
    wait_until(clock::now() + all_.options.progress_time, reason::progress_late);
    parse_body();
  }
  void unknown_complete() {
    call_->reply.body = std::move(in_.body());
    if (in_range_) {
      if (call_->reply.body.size() != call_->into.size()) return too_short(call_->reply.body.size());
      std::memcpy(call_->into.data(), call_->reply.body.data(), call_->into.size());
      call_->reply.body.clear();
    }
    complete();
  }
  void too_long() {
    if (in_range_) return failed_with(call_->failure({"the server sent more bytes than the range has"}));
    call_->reply.cut = true;
    keep_ = false;
    complete();
  }

  // ---- Ends

  void complete() {
    end(nullptr, keep_ && !writing_ && in_.waiting() == 0 ? ending::reusable : ending::closed);
  }
  void too_short(std::size_t got) {
    failed_with(call_->failure({"the connection ended after ", got, " of ", call_->into.size(), " bytes"}));
  }
  void malformed() {
    failed_with(call_->failure({"the server's answer is no HTTP/1.1: ", in_.fault().message()}));
  }
  template <class Error>
  void failed_with(const Error& made) {
    std::exception_ptr failure;
    {
      Error own(made);  // `made` is destroyed after the call has been told, perhaps beside its owner
      own.own_texts();
      failure = std::make_exception_ptr(std::move(own));
    }
    end(std::move(failure), ending::closed);
  }
  void broke(std::exception_ptr failure) {
    if (call_ != nullptr) end(std::move(failure), ending::closed);
  }
  void failed(const error_code& code) {
    const auto fail = [&](std::initializer_list<piece> why) { failed_with(call_->failure(why)); };
    const auto late = [&](std::initializer_list<piece> why) {
      failed_with(call_->failure(why).after_time_out());
    };
    const http_options& limits = all_.options;
    switch (why_) {
      case reason::stopped:
        return end(cancelled(*call_), ending::closed);
      case reason::connect_late:
        return failed_with(call_
                               ->failure({"no connection within ", limits.connect_time.count(),
                                          " ms; check host and port, and whether a firewall is between"})
                               .after_time_out()
                               .without_connection());
      case reason::first_byte_late:
        return late({"no answer within ", limits.first_byte_time.count(), " ms"});
      case reason::progress_late:
        return late({"the answer stalled: no byte within ", limits.progress_time.count(), " ms"});
      case reason::too_slow:
        return late({window_bytes_, " bytes of the answer came in ", limits.throughput_window.count(),
                     " ms, fewer than http_options::min_throughput asks for (", limits.min_throughput,
                     " bytes/s)"});
      case reason::too_long:
        return late(
            {"the request was not over after ", longest_time().count(), " ms; see http_options::max_time"});
      case reason::none:
        break;
    }
    const bool ended = code == net::error::eof || code == net::error::connection_reset ||
                       code == net::error::broken_pipe || code == net::error::connection_aborted ||
                       code == net::ssl::error::stream_truncated;
    if (ended && served_ && !got_byte_ && !call_->replaced && call_->method != verb::post) {
      call_->replaced = true;
      return end(nullptr, ending::stale);
    }
    if (in_tunnel_)
      return fail({"the proxy ", proxy_->where.authority(), " ended the connection: ", code.message()});
    if (!started_) {
      const url& to = proxy_ != nullptr ? proxy_->where : origin_;
      if (code == net::error::host_not_found)  // a name server that does not answer says another thing
        return failed_with(call_
                               ->failure({"there is no host ", to.host, "; check the ",
                                          proxy_ != nullptr ? "proxy that the environment names" : "URL"})
                               .recurring());
      return failed_with(
          call_
              ->failure({proxy_ != nullptr ? "cannot connect to the proxy " : "cannot connect to ",
                         to.authority(), ": ", code.message()})
              .without_connection());
    }
    if (!ended) return fail({"the connection failed: ", code.message()});
    if (!got_byte_) return fail({"the server ended the connection without an answer"});
    if (call_->reply.status == 0 || !call_->has_range())
      return fail({"the server ended the connection within its answer"});
    const unsigned status = call_->reply.status;
    if (status != 200 && status != 206)
      return failed_with(call_->with_facts(answer_error(status, call_->reply.retry_after())));
    too_short(in_.has_body() ? in_.body().size()
                             : call_->into.size() - std::min(place_.size(), call_->into.size()));
  }
  void end(std::exception_ptr failure, ending how) {
    if (how != ending::reusable) close();
    if (writing_) {  // that ends now, and until then the body is in use
      answered_.emplace(std::move(failure), how);
      return;
    }
    call& what = *std::exchange(call_, nullptr);
    served_ = true;
    idle_since_ = clock::now();
    record_end(what, failure != nullptr, how);
    wait_until(clock::time_point::max(), reason::none);
    told_.ended(told_.self, shared_from_this(), what, std::move(failure), how);
  }

  void record_end(const call& what, bool failed, ending how) noexcept {
    using recorder = request_recorder;
    const auto sent = std::exchange(sent_at_, clock::time_point{});
    if (sent == clock::time_point{}) return;  // there was no connection
    all_.counted.ended.ended(sent, idle_since_,
                             how == ending::stale || why_ == reason::stopped ? &recorder::cancelled
                             : failed || what.reply.status >= 400            ? &recorder::failed
                                                                             : &recorder::answered);
  }

  listener told_;
  call* call_ = nullptr;
  clock::time_point idle_since_{}, begun_{}, head_until_{}, sent_at_{};
  clock::time_point answered_at_ = clock::time_point::max(), window_at_{};  // the header was complete
  std::uint64_t answer_bytes_ = 0, window_bytes_ = 0;
  bool started_ = false, served_ = false, in_tunnel_ = false, got_byte_ = false, keep_ = false;
  bool writing_ = false;                                           // a body, while the answer is awaited
  std::optional<std::pair<std::exception_ptr, ending>> answered_;  // before the body was written
  bool in_range_ = false;                                          // the answer has the range's bytes
  std::string out_;
  answer_reader in_;
  mutable_bytes place_;
};

}  // namespace penstock::inline v0_1::detail::web
