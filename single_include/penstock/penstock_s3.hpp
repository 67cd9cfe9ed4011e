// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Penstock 0.1.0, the component s3. It needs penstock.hpp and penstock_http.hpp beside it.
// Made by tools/amalgamate.py from include/penstock; do not edit.
#pragma once

#if !__has_include(<boost/beast/http/parser.hpp>) || !__has_include(<pugixml.hpp>)
#error "penstock_s3.hpp needs Boost.Beast, pugixml and nlohmann-json: link penstock::s3"
#endif
#if !__has_include(<openssl/hmac.h>)
#error "penstock_s3.hpp needs OpenSSL: link penstock::s3"
#endif
#if !__has_include(<openssl/crypto.h>)
#error "penstock_s3.hpp needs OpenSSL: link penstock::s3"
#endif
#if !__has_include(<nlohmann/json.hpp>)
#error "penstock_s3.hpp needs nlohmann-json: link penstock::s3"
#endif
#if !__has_include(<pugixml.hpp>)
#error "penstock_s3.hpp needs pugixml: link penstock::s3"
#endif
#if !__has_include(<pugixml.hpp>) || !__has_include(<openssl/evp.h>)
#error "penstock_s3.hpp needs OpenSSL and pugixml: link penstock::s3"
#endif
#if !__has_include(<boost/beast/http/parser.hpp>) || !__has_include(<pugixml.hpp>)
#error "penstock_s3.hpp needs Boost.Beast and pugixml: link penstock::s3"
#endif
#if !__has_include(<openssl/evp.h>)
#error "penstock_s3.hpp needs OpenSSL: link penstock::s3"
#endif
#if !__has_include(<boost/beast/http/parser.hpp>) || !__has_include(<pugixml.hpp>)
#error "penstock_s3.hpp needs Boost.Beast, OpenSSL and pugixml: link penstock::s3"
#endif
#if !__has_include(<boost/beast/http/parser.hpp>) || !__has_include(<openssl/ssl.h>)
#error "penstock_s3.hpp needs Boost.Beast and OpenSSL: link penstock::s3"
#endif
#if !__has_include(<boost/beast/http/parser.hpp>) || !__has_include(<pugixml.hpp>)
#error "penstock_s3.hpp needs Boost.Beast, OpenSSL, pugixml and nlohmann-json: link penstock::s3"
#endif

#include "penstock.hpp"
#include "penstock_http.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <optional>
#include <pugixml.hpp>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

// ---- penstock/storage/s3/requests/percent.hpp

namespace penstock::inline v0_1::detail::s3 {

[[nodiscard]] constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
[[nodiscard]] constexpr bool is_lower(char c) noexcept { return c >= 'a' && c <= 'z'; }
[[nodiscard]] constexpr bool is_upper(char c) noexcept { return c >= 'A' && c <= 'Z'; }
[[nodiscard]] constexpr bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }
[[nodiscard]] constexpr char to_lower(char c) noexcept {
  return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
}

[[nodiscard]] constexpr bool equal_but_for_case(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (to_lower(a[i]) != to_lower(b[i])) return false;
  return true;
}

/// What is left of a text without the spaces and tabs around it.
[[nodiscard]] constexpr std::string_view trimmed(std::string_view line) noexcept {
  while (!line.empty() && is_blank(line.front())) line.remove_prefix(1);
  while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
  return line;
}

/// Whether a text can be a header's value: it has no control characters, so that it cannot become two
/// headers.
[[nodiscard]] constexpr bool fits_into_header(std::string_view line) noexcept {
  for (const char c : line)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  return true;
}

/// Appends `chars` percent-encoded as AWS signs it: all but letters, digits and `-._~` is %XX in capitals; a
/// slash stays in paths.
inline void append_encoded(std::string& line, std::string_view chars, bool keeps_slashes = false) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  for (const char c : chars) {
    if (is_digit(c) || is_lower(c) || is_upper(c) || c == '-' || c == '.' || c == '_' || c == '~' ||
        (keeps_slashes && c == '/')) {
      line += c;
    } else {
      const auto value = static_cast<unsigned char>(c);
      line += '%';
      line += digits[value >> 4];
      line += digits[value & 15];
    }
  }
}
[[nodiscard]] inline std::string percent_encoded(std::string_view chars, bool keeps_slashes = false) {
  std::string line;
  append_encoded(line, chars, keeps_slashes);
  return line;
}

[[nodiscard]] constexpr int hex_value(char c) noexcept {
  if (is_digit(c)) return c - '0';
  c = to_lower(c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/// The names of a list that was asked for with `encoding-type=url`: as in forms, `+` is a space. Nothing if
/// a `%` has no two digits after it. Source: botocore, compat.py, unquote_str.
[[nodiscard]] inline std::optional<std::string> form_decoded(std::string_view chars) {
  std::string line;
  line.reserve(chars.size());
  for (std::size_t i = 0; i < chars.size(); ++i) {
    if (chars[i] != '%') {
      line += chars[i] == '+' ? ' ' : chars[i];
      continue;
    }
    const int high = i + 2 < chars.size() ? hex_value(chars[i + 1]) : -1;
    const int low = i + 2 < chars.size() ? hex_value(chars[i + 2]) : -1;
    if (high < 0 || low < 0) return std::nullopt;
    line += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return line;
}

}  // namespace penstock::inline v0_1::detail::s3

// ---- penstock/storage/iceberg_catalog.hpp

namespace penstock::inline v0_1 {

/// Options of `iceberg_location`.
struct iceberg_catalog_options {
  std::string warehouse = {};  ///< as the catalogue calls it; "": its default
  /// Of a catalogue that wants OAuth 2: "id:secret", or the secret alone. It is exchanged for a token first.
  /// No error shows it.
  std::string credential = {};
  std::string scope = "catalog";  ///< what the token is for; "": not said
  /// The URL where tokens are given; "": that of the catalogue with "/v1/oauth/tokens" behind it.
  std::string token_server = {};
  /// How it is reached. A token that you have: `.headers = {{"Authorization", "Bearer " + token}}`.
  http_options connection = {};
};

namespace detail {

/// A text in an object of JSON; "" if it has none of that name.
[[nodiscard]] inline std::string catalog_text(const nlohmann::json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// Asks a catalogue of tables.
class catalog_calls {
 public:
  explicit catalog_calls(const http_options& options)
      : headers_(options.headers), client_(options), retries_(policy_of(options)) {
    for (const auto& [name, value] : headers_) {  // any of them may be one: Authorization, Cookie, X-Api-Key
      keep_secret(value);
      keep_secret(value.substr(value.rfind(' ') + 1));
    }
    headers_.emplace_back("Accept", "application/json");
  }

  /// The object that a URL gives. `missing`: what to say if it is not there.
  [[nodiscard]] nlohmann::json get(const std::string& address, std::string_view missing) {
    return retries_.insist([&] {
      web::call call;
      call.where = parse_url(address);
      call.headers = headers_;
      return answer(call, "asking the catalogue", missing);
    });
  }
  /// Asks for a token at a URL, and sends it with all that is asked from then on.
  void log_in(const std::string& address, const iceberg_catalog_options& as) {
    const bool named = std::ranges::any_of(
        headers_, [](const auto& one) { return s3::equal_but_for_case(one.first, "authorization"); });
    if (named)
      throw error(errc::argument,
                  "the options have a credential, and a header Authorization beside it: name one of them");
    const std::size_t colon = as.credential.find(':');
    if (colon == 0 || colon == as.credential.size() - 1)
      throw error(errc::argument,
                  {"the credential has nothing ", colon == 0 ? "before" : "behind",
                   " its first ':'; write \"id:secret\", or the secret alone if it has no ':'"});
    keep_secret(as.credential.substr(colon + 1));  // npos + 1 is 0
    std::string form = "grant_type=client_credentials";
    const auto add = [&](const char* name, std::string_view value) {
      form.append("&").append(name).append("=").append(s3::percent_encoded(value));
    };
    if (colon != std::string::npos) add("client_id", std::string_view(as.credential).substr(0, colon));
    add("client_secret", std::string_view(as.credential).substr(colon + 1));
    if (!as.scope.empty()) add("scope", as.scope);
    const nlohmann::json said = retries_.insist([&] {
      web::call call;
      call.method = web::verb::post;
      call.where = parse_url(address);
      call.headers = headers_;
      call.headers.emplace_back("Content-Type", "application/x-www-form-urlencoded");
      call.body = form;
      call.follow_redirects = false;  // the secret is for this server
      return answer(call, "asking for a token", "there are no tokens at this URL");
    });
    const std::string token = catalog_text(said, "access_token");
    if (token.empty() || !s3::fits_into_header(token))
      throw error(errc::format, "the answer has no token").in_file(without_secrets(address));
    keep_secret(token);
    headers_.emplace_back("Authorization", "Bearer " + token);
  }

 private:
  [[nodiscard]] nlohmann::json answer(web::call& call, std::string_view doing, std::string_view missing) {
    call.headers_stay = true;
    call.max_body = std::size_t{64} << 20;  // the answer has all of the table's metadata
    client_.perform(call);
    const web::answer& reply = call.reply;
    if (reply.cut) throw call.failure({"the catalogue's answer has more than 64 MiB"}).recurring();
    nlohmann::json said = nlohmann::json::parse(reply.body, nullptr, false);
    constexpr unsigned good = 200, unknown = 401, gone = 404;
    if (reply.status == gone) throw error(errc::missing, {missing, message_in(said)}).in_file(call.shown());
    if (reply.status != good) {
      http_error failed = answer_error(reply.status, reply.retry_after());
      const bool hint = reply.status == unknown;
      failed.say_more(
          text({hint ? "or in iceberg_catalog_options::credential; " : "", doing, message_in(said)}));
      throw call.with_facts(std::move(failed));
    }
    if (!said.is_object())
      throw error(errc::format, "the catalogue's answer is no object of JSON").in_file(call.shown());
    return said;
  }
  // ": " and what is said of an error, by a catalogue or, as RFC 6749 has it, by a server of tokens.
  // It may repeat the request, and so a secret.
  [[nodiscard]] std::string message_in(const nlohmann::json& said) const {
    constexpr std::size_t maximum = 300;
    if (!said.is_object() || !said.contains("error")) return {};
    const nlohmann::json& failed = said["error"];
    std::string message = failed.is_object() ? catalog_text(failed, "message") : catalog_text(said, "error");
    if (const std::string more = catalog_text(said, "error_description"); !more.empty())
      message += ", " + more;
    if (message.empty()) return message;
    const bool tells = std::ranges::any_of(
        secrets_, [&](const std::string& one) { return message.find(one) != message.npos; });
    return ": " + (tells ? "(left out, because it repeats a secret)" : message.substr(0, maximum));
  }
  void keep_secret(const std::string& one) {
    if (one.empty()) return;
    secrets_.push_back(one);
    secrets_.push_back(s3::percent_encoded(one));
  }

  std::vector<std::pair<std::string, std::string>> headers_;
  std::vector<std::string> secrets_;  // no error shows them
  web::client client_;
  retrier retries_;
};

}  // namespace detail

/// Where the metadata file of a table of Apache Iceberg is, as a REST catalogue says.
///
///     const auto newest = [] { return s3(iceberg_location("https://catalog.example/api", "shop.sales")); };
///
/// `iceberg(newest())` reads the table as it is then.
///
/// In: the catalogue's URL, in front of "/v1", and the table's name behind the levels of its namespace, with
/// dots between. Out: the file's name, such as "s3://bucket/shop/sales/metadata/00012-....metadata.json".
/// The scheme `s3a` or `s3n`, as Hadoop calls it, becomes `s3`.
/// Sends two requests: for the catalogue's configuration, and for the table, to the server that the
/// configuration names if it names one, which gets the token and the headers, too, unless that would go
/// from https to http; with a credential one for a token before them. Each is tried again as reads are.
/// Credentials for the storage that the catalogue hands out are not used.
/// Errors: errc::missing for a table or a catalogue that is not there; errc::argument for names that are
/// none, and for a credential without id or secret; errc::format for what is no answer of a catalogue;
/// errc::io, as `http`, for other answers, with what the catalogue says of it unless that repeats a secret, a
/// token or a header's value, and for a configuration that leads from https to http.
/// Threads: any.
/// Source: Apache Iceberg, "REST Catalog API"; RFC 6749, 4.4, of credentials.
[[nodiscard]] inline std::string iceberg_location(std::string_view catalog, std::string_view table,
                                                  const iceberg_catalog_options& options = {}) {
  using nlohmann::json;
  detail::check(options.connection);
  while (catalog.ends_with('/')) catalog.remove_suffix(1);
  const std::size_t dot = table.rfind('.');
  if (dot == table.npos || dot == 0 || dot + 1 == table.size())
    throw error(errc::argument, {"a table of a catalogue is called namespace.table, and not '", table, "'"});
  detail::catalog_calls calls(options.connection);
  if (!options.credential.empty())
    calls.log_in(
        options.token_server.empty() ? detail::text({catalog, "/v1/oauth/tokens"}) : options.token_server,
        options);

  std::string query;
  if (!options.warehouse.empty()) query = "?warehouse=" + detail::s3::percent_encoded(options.warehouse);
  const json settings =
      calls.get(detail::text({catalog, "/v1/config", query}), "there is no catalogue of Iceberg at this URL");
  std::string base(catalog), prefix;
  for (const char* const kind : {"defaults", "overrides"}) {
    const auto some = settings.find(kind);
    if (some == settings.end()) continue;
    if (std::string said = detail::catalog_text(*some, "prefix"); !said.empty()) prefix = std::move(said);
    if (std::string said = detail::catalog_text(*some, "uri"); !said.empty()) base = std::move(said);
  }
  if (parse_url(catalog).scheme == "https" && parse_url(base).scheme == "http")
    throw error(errc::io, {"the catalogue sends its readers from https to http, to ", without_secrets(base),
                           ": correct its configuration's uri"})
        .in_file(without_secrets(std::string(catalog)));
  while (base.ends_with('/')) base.pop_back();

  std::string path = "/v1/";
  if (!prefix.empty()) path += detail::s3::percent_encoded(prefix, true) + "/";
  path += "namespaces/";
  for (std::string_view levels = table.substr(0, dot); !levels.empty();) {
    const std::string_view one = levels.substr(0, levels.find('.'));
    levels.remove_prefix(std::min(one.size() + 1, levels.size()));
    path += detail::s3::percent_encoded(one) + (levels.empty() ? "" : "%1F");
  }
  path += "/tables/" + detail::s3::percent_encoded(table.substr(dot + 1));
  const json found =
      calls.get(base + path, detail::text({"the catalogue does not have the table '", table, "'"}));
  const std::string place = detail::catalog_text(found, "metadata-location");
  if (place.empty())
    throw error(errc::format, {"the catalogue does not say where the metadata of '", table, "' are"})
        .in_file(without_secrets(base + path));
  const bool of_hadoop = place.starts_with("s3a://") || place.starts_with("s3n://");
  return of_hadoop ? "s3" + place.substr(3) : place;
}

}  // namespace penstock::inline v0_1

// ---- penstock/storage/s3/requests/dates.hpp

namespace penstock::inline v0_1::detail::s3 {

/// Dates are whole seconds since 1970, so that no clock's resolution decides how far they reach.
using wall_time = std::chrono::sys_seconds;

/// Reads numbers and separators of a date one after another.
class date_reader {
 public:
  explicit date_reader(std::string_view rest) : rest_(rest) {}
  /// Exactly `digits` digits.
  int number(std::size_t digits) {
    int value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      if (rest_.empty() || !is_digit(rest_.front())) {
        good_ = false;
        return 0;
      }
      value = value * 10 + (rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    return value;
  }
  /// One of these characters.
  char one_of(std::string_view choices) {
    if (rest_.empty() || choices.find(rest_.front()) == std::string_view::npos) {
      good_ = false;
      return choices.front();
    }
    const char found = rest_.front();
    rest_.remove_prefix(1);
    return found;
  }
  void word(std::string_view expected) {
    if (!rest_.starts_with(expected)) {
      good_ = false;
    } else {
      rest_.remove_prefix(expected.size());
    }
  }
  [[nodiscard]] std::string_view letters(std::size_t count) {
    const std::string_view found = rest_.substr(0, count);
    good_ = good_ && found.size() == count;
    rest_.remove_prefix(found.size());
    return found;
  }
  void fraction() {
    if (rest_.empty() || rest_.front() != '.') return;
    rest_.remove_prefix(1);
    (void)number(1);
    while (!rest_.empty() && is_digit(rest_.front())) rest_.remove_prefix(1);
  }
  [[nodiscard]] bool done() const noexcept { return good_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

[[nodiscard]] inline std::optional<wall_time> time_of(int year, int month, int day, int hour, int minute,
                                                      int second) {
  using namespace std::chrono_literals;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;  // 60: a leap second
  return std::chrono::sys_days(date) + hour * 1h + minute * 1min + second * 1s;
}

/// `2026-11-23T20:15:00Z`, with a fraction of a second and an offset if there are any: RFC 3339, as
/// credentials give their end. A fraction is cut off.
[[nodiscard]] inline std::optional<wall_time> parse_rfc3339(std::string_view chars) {
  date_reader in(chars);
  const int year = in.number(4);
  in.one_of("-");
  const int month = in.number(2);
  in.one_of("-");
  const int day = in.number(2);
  in.one_of("Tt ");
  const int hour = in.number(2);
  in.one_of(":");
  const int minute = in.number(2);
  in.one_of(":");
  const int second = in.number(2);
  in.fraction();
  std::chrono::minutes ahead{0};
  if (const char zone = in.one_of("Zz+-"); zone == '+' || zone == '-') {
    const int hours = in.number(2);
    in.one_of(":");
    const int minutes = in.number(2);
    if (hours > 23 || minutes > 59) return std::nullopt;
    ahead = std::chrono::minutes((zone == '+' ? 1 : -1) * (hours * 60 + minutes));
  }
  if (!in.done()) return std::nullopt;
  const auto local = time_of(year, month, day, hour, minute, second);
  return local ? std::optional<wall_time>(*local - ahead) : std::nullopt;
}

inline constexpr std::array<std::string_view, 12> month_names{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                              "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

/// `Mon, 23 Nov 2026 20:15:00 GMT`, as the headers Date and Retry-After have it. The two older spellings of
/// RFC 9110, which nobody sends any more, are not read.
[[nodiscard]] inline std::optional<wall_time> parse_http_date(std::string_view chars) {
  date_reader in(trimmed(chars));
  (void)in.letters(3);
  in.word(", ");
  const int day = in.number(2);
  in.one_of(" ");
  const std::string_view name = in.letters(3);
  in.one_of(" ");
  const int year = in.number(4);
  in.one_of(" ");
  const int hour = in.number(2);
  in.one_of(":");
  const int minute = in.number(2);
  in.one_of(":");
  const int second = in.number(2);
  in.word(" GMT");
  if (!in.done()) return std::nullopt;
  for (std::size_t i = 0; i < month_names.size(); ++i)
    if (month_names[i] == name) return time_of(year, static_cast<int>(i) + 1, day, hour, minute, second);
  return std::nullopt;
}

/// `20261123T201500Z`, into `line`.
inline void write_amz_date(std::string& line, wall_time when) {
  const auto day = std::chrono::floor<std::chrono::days>(when);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(when - day);
  const auto digits = [&line](unsigned value, unsigned first) {
    for (unsigned at = first; at != 0; at /= 10) line += static_cast<char>('0' + value / at % 10);
  };
  line.clear();
  digits(static_cast<unsigned>(static_cast<int>(date.year())), 1000);
  digits(static_cast<unsigned>(date.month()), 10);
  digits(static_cast<unsigned>(date.day()), 10);
  line += 'T';
  digits(static_cast<unsigned>(clock.hours().count()), 10);
  digits(static_cast<unsigned>(clock.minutes().count()), 10);
  digits(static_cast<unsigned>(clock.seconds().count()), 10);
  line += 'Z';
}

}  // namespace penstock::inline v0_1::detail::s3

// ---- penstock/storage/s3/credentials.hpp

namespace penstock::inline v0_1 {

/// What requests to S3 are signed with. The default is nobody: an anonymous reader, whose requests are not
/// signed.
///
///     const s3_credentials mine{"AKIAIOSFODNN7EXAMPLE", "the secret"};
///
/// They have no operator<<, and no error or description shows a part of them; what is destroyed leaves
/// neither secret nor token in its memory.
class s3_credentials {
 public:
  s3_credentials() = default;
  s3_credentials(std::string key_id, std::string secret, std::string session_token = {},
                 std::optional<std::chrono::sys_seconds> expires = std::nullopt)
      : key_id_(std::move(key_id)),
        secret_(std::move(secret)),
        token_(std::move(session_token)),
        expires_(expires) {}
  s3_credentials(const s3_credentials&) = default;
  s3_credentials(s3_credentials&& other) noexcept { swap(other); }
  s3_credentials& operator=(s3_credentials other) noexcept {
    swap(other);
    return *this;
  }
  ~s3_credentials() {
    wipe(secret_);
    wipe(token_);
  }

  [[nodiscard]] bool anonymous() const noexcept { return key_id_.empty(); }
  [[nodiscard]] const std::string& key_id() const noexcept { return key_id_; }
  [[nodiscard]] const std::string& secret() const noexcept { return secret_; }
  [[nodiscard]] const std::string& session_token() const noexcept { return token_; }
  /// Their end, if they have one.
  [[nodiscard]] const std::optional<std::chrono::sys_seconds>& expires() const noexcept { return expires_; }

  [[nodiscard]] friend bool operator==(const s3_credentials& a, const s3_credentials& b) noexcept {
    return a.key_id_ == b.key_id_ && a.secret_ == b.secret_ && a.token_ == b.token_;
  }

 private:
  void swap(s3_credentials& other) noexcept {
    key_id_.swap(other.key_id_);
    secret_.swap(other.secret_);
    token_.swap(other.token_);
    expires_.swap(other.expires_);
  }
  static void wipe(std::string& chars) noexcept { OPENSSL_cleanse(chars.data(), chars.size()); }

  std::string key_id_, secret_, token_;
  std::optional<std::chrono::sys_seconds> expires_;
};

}  // namespace penstock::inline v0_1

// ---- penstock/storage/s3/requests/hash.hpp

namespace penstock::inline v0_1::detail::s3 {

using digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

[[nodiscard]] inline const unsigned char* octets(std::string_view chars) noexcept {
  return reinterpret_cast<const unsigned char*>(chars.data());
}

[[nodiscard]] inline digest sha256(std::string_view chars) {
  digest out{};
  if (SHA256(octets(chars), chars.size(), out.data()) == nullptr)
    throw error(errc::state, "OpenSSL has no SHA-256 here, which requests to S3 are signed with");
  return out;
}

/// HMAC-SHA-256 of `chars` with the `length` bytes at `secret`.
[[nodiscard]] inline digest hmac_sha256(const unsigned char* secret, std::size_t length,
                                        std::string_view chars) {
  digest out{};
  unsigned int written = 0;
  if (HMAC(EVP_sha256(), secret, static_cast<int>(length), octets(chars), chars.size(), out.data(),
           &written) == nullptr ||
      written != out.size())
    throw error(errc::state, "OpenSSL has no HMAC with SHA-256 here, which requests to S3 are signed with");
  return out;
}
[[nodiscard]] inline digest hmac_sha256(const digest& secret, std::string_view chars) {
  return hmac_sha256(secret.data(), secret.size(), chars);
}

inline void append_hex(std::string& line, std::span<const unsigned char> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (const unsigned char byte : bytes) {
    line += digits[byte >> 4];
    line += digits[byte & 15];
  }
}

/// The SHA-256 of a request's body, as `x-amz-content-sha256` has it.
[[nodiscard]] inline std::string payload_hash(std::string_view body) {
  std::string line;
  append_hex(line, sha256(body));
  return line;
}

}  // namespace penstock::inline v0_1::detail::s3

// ---- penstock/storage/s3/requests/http_answer.hpp

namespace penstock::inline v0_1::detail::s3 {

/// A header of a request or an answer, or a parameter of a query, which is not encoded.
struct name_value {
  std::string name;
  std::string value;
};

/// An answer as a whole. It may hold credentials: nothing prints it.
struct http_answer {
  int status = 0;
  std::vector<name_value> headers;
  std::string body;
};

/// The first header of that name; names have no case.
[[nodiscard]] inline std::optional<std::string_view> header_of(std::span<const name_value> headers,
                                                               std::string_view name) noexcept {
  for (const name_value& one : headers)
    if (equal_but_for_case(one.name, name)) return trimmed(one.value);
  return std::nullopt;
}

}  // namespace penstock::inline v0_1::detail::s3

// ---- penstock/storage/s3/aws_signature.hpp

namespace penstock::inline v0_1::detail::s3 {

/// In the place of a body's hash where TLS protects the body.
inline constexpr std::string_view unsigned_payload = "UNSIGNED-PAYLOAD";
/// The SHA-256 of no bytes.
inline constexpr std::string_view empty_payload =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// A request as it is signed. It views its parts, which must live until the call returns.
struct signable {
  std::string_view method = "GET";
  /// The header `host`, with the port if it is not the scheme's own.
  std::string_view host;
  /// Percent-encoded once, not normalised; empty means `/`.
  std::string_view path;
  /// Not encoded, in any order.
  std::span<const name_value> query;
  /// Headers that are signed besides those that the signer adds. A name may come several times.
  std::span<const name_value> headers;
  /// hex(SHA-256) of the body, or `unsigned_payload`.
  std::string_view payload = empty_payload;
};

/// What a signer makes of a request; kept and filled again, its strings allocate nothing once they have
/// grown. It holds a signature: nothing prints it.
struct signed_request {
  /// The path with the query, encoded as it was signed: it must be sent as it is.
  std::string target;
  /// Headers to send besides those that were given: x-amz-date, the payload's hash and the token if there are
  /// any, and authorization. Not `host`, which the request has anyway.
  std::vector<name_value> headers;
};

/// Signs requests with AWS Signature Version 4, as headers or as a presigned query, for a service in a
/// region. The signing key is kept until the day, the secret, the region or the service changes. Anonymous
/// credentials sign nothing: the target is made, and no header is added.
///
/// Threads: one at a time; each thread that signs has a signer of its own.
/// Cost: about ten SHA-256 of a few hundred bytes; no allocation in the steady state.
/// Source: AWS, "Signature Version 4 signing process"; the examples of "Authenticating Requests" are tests.
class aws_signer {
 public:
  /// `service` is `s3` or `sts`: only S3 takes the payload's hash as a header.
  explicit aws_signer(std::string region, std::string service = "s3")
      : region_(std::move(region)), service_(std::move(service)) {}

  [[nodiscard]] const std::string& region() const noexcept { return region_; }
  /// A server said where its bucket is.
  void move_to(std::string region) { region_ = std::move(region); }

  /// Signs with headers; `now` must be within 15 minutes of the server's time.
  void sign(const signable& request, const s3_credentials& as, wall_time now, signed_request& out) {
    begin_query(request.query);
    if (as.anonymous()) return end(request, out, 0);
    begin_headers(request);
    std::size_t added = 0;
    write_amz_date(date_, now);
    const auto adds = [&](std::string_view name, std::string_view value) {
      add_header(name, value);
      set(out.headers, added++, name, value);
    };
    adds("x-amz-date", date_);
    if (service_ == "s3") adds("x-amz-content-sha256", request.payload);
    if (!as.session_token().empty()) adds("x-amz-security-token", as.session_token());
    sort_headers();
    end_query();
    write_scope();
    write_canonical(request, request.payload);
    authorization_ = "AWS4-HMAC-SHA256 Credential=";
    authorization_.append(as.key_id()).append("/").append(scope_);
    authorization_.append(", SignedHeaders=").append(signed_names_).append(", Signature=");
    append_hex(authorization_, signature(as));
    set(out.headers, added++, "authorization", authorization_);
    end(request, out, added);
  }

  /// Makes a target that needs no headers but `host` and those given, and is good for `lifetime`. Its payload
  /// is not signed. Throws errc::argument for a lifetime that is not within 1 second and 7 days.
  void presign(const signable& request, const s3_credentials& as, wall_time now,
               std::chrono::seconds lifetime, signed_request& out) {
    constexpr std::chrono::seconds longest{604'800};
    if (lifetime.count() < 1 || lifetime > longest)
      throw error(errc::argument,
                  {"a presigned request lives 1 to 604800 seconds (7 days), not ", lifetime.count()});
    begin_query(request.query);
    if (as.anonymous()) return end(request, out, 0);
    begin_headers(request);
    sort_headers();
    write_signed_names();
    write_amz_date(date_, now);
    write_scope();
    add_query("X-Amz-Algorithm", "AWS4-HMAC-SHA256");
    authorization_.assign(as.key_id()).append("/").append(scope_);
    add_query("X-Amz-Credential", authorization_);
    add_query("X-Amz-Date", date_);
    add_query("X-Amz-Expires", text({lifetime.count()}));
    add_query("X-Amz-SignedHeaders", signed_names_);
    if (!as.session_token().empty()) add_query("X-Amz-Security-Token", as.session_token());
    end_query();
    write_canonical(request, unsigned_payload);
    query_ += "&X-Amz-Signature=";
    append_hex(query_, signature(as));
    end(request, out, 0);
  }

  /// What was hashed by the last call, for tests: it holds the token.
  [[nodiscard]] const std::string& canonical_request() const noexcept { return canonical_; }

 private:
  // Entries that are kept with their strings, of which the first `used` count.
  static void set(std::vector<name_value>& list, std::size_t at, std::string_view name,
                  std::string_view value) {
    if (at == list.size()) list.emplace_back();
    list[at].name.assign(name);
    list[at].value.assign(value);
  }
  static void sort(std::vector<name_value>& list, std::size_t used) {
    // An insertion sort: short lists, it is stable, and it allocates nothing.
    for (std::size_t i = 1; i < used; ++i)
      for (std::size_t j = i; j > 0 && before(list[j], list[j - 1]); --j) {
        list[j].name.swap(list[j - 1].name);
        list[j].value.swap(list[j - 1].value);
      }
  }
  static bool before(const name_value& a, const name_value& b) noexcept { return a.name < b.name; }

  void begin_query(std::span<const name_value> items) {
    queries_used_ = 0;
    for (const name_value& one : items) add_query(one.name, one.value);
    end_query();
  }
  void add_query(std::string_view name, std::string_view value) {
    set(queries_, queries_used_, {}, {});
    append_encoded(queries_[queries_used_].name, name);
    append_encoded(queries_[queries_used_].value, value);
    ++queries_used_;
  }
  /// Joins the query, sorted by name and then value.
  void end_query() {
    for (std::size_t i = 1; i < queries_used_; ++i)
      for (std::size_t j = i; j > 0; --j) {
        name_value &left = queries_[j - 1], &right = queries_[j];
        if (left.name < right.name || (left.name == right.name && left.value <= right.value)) break;
        left.name.swap(right.name);
        left.value.swap(right.value);
      }
    query_.clear();
    for (std::size_t i = 0; i < queries_used_; ++i) {
      if (i != 0) query_ += '&';
      query_.append(queries_[i].name).append("=").append(queries_[i].value);
    }
  }

  void begin_headers(const signable& request) {
    headers_used_ = 0;
    add_header("host", request.host);
    for (const name_value& one : request.headers) add_header(one.name, one.value);
  }
  /// In lower case, without blanks at the ends, and one space for a run of blanks inside.
  void add_header(std::string_view name, std::string_view value) {
    set(headers_, headers_used_, {}, {});
    name_value& made = headers_[headers_used_++];
    for (const char c : name) made.name += to_lower(c);
    value = trimmed(value);
    for (std::size_t i = 0; i < value.size(); ++i)
      if (!is_blank(value[i])) {
        made.value += value[i];
      } else if (!is_blank(value[i - 1])) {  // the first is no blank
        made.value += ' ';
      }
  }
  void sort_headers() { sort(headers_, headers_used_); }
  void write_signed_names() {
    signed_names_.clear();
    for (std::size_t i = 0; i < headers_used_; ++i) {
      if (i != 0 && headers_[i].name == headers_[i - 1].name) continue;
      if (i != 0) signed_names_ += ';';
      signed_names_ += headers_[i].name;
    }
  }

  void write_scope() {
    scope_.assign(date_, 0, 8);
    scope_.append("/").append(region_).append("/").append(service_).append("/aws4_request");
  }
  void write_canonical(const signable& request, std::string_view payload) {
    write_signed_names();
    canonical_.assign(request.method).append("\n");
    canonical_.append(request.path.empty() ? std::string_view("/") : request.path).append("\n");
    canonical_.append(query_).append("\n");
    for (std::size_t i = 0; i < headers_used_; ++i) {
      if (i != 0 && headers_[i].name == headers_[i - 1].name) {
        canonical_.back() = ',';  // the line's end: values of one name are one line
      } else {
        canonical_.append(headers_[i].name).append(":");
      }
      canonical_.append(headers_[i].value).append("\n");
    }
    canonical_.append("\n").append(signed_names_).append("\n").append(payload);
  }
  [[nodiscard]] digest signature(const s3_credentials& as) {
    to_sign_.assign("AWS4-HMAC-SHA256\n").append(date_).append("\n").append(scope_).append("\n");
    append_hex(to_sign_, sha256(canonical_));
    if (as != key_of_ || scope_ != scope_of_key_) {
      std::string secret = "AWS4" + as.secret();
      digest made = hmac_sha256(octets(secret), secret.size(), std::string_view(date_).substr(0, 8));
      OPENSSL_cleanse(secret.data(), secret.size());
      made = hmac_sha256(made, region_);
      made = hmac_sha256(made, service_);
      signing_key_ = hmac_sha256(made, "aws4_request");
      key_of_ = as;
      scope_of_key_ = scope_;
    }
    return hmac_sha256(signing_key_, to_sign_);
  }

  void end(const signable& request, signed_request& out, std::size_t headers) const {
    out.target.assign(request.path.empty() ? std::string_view("/") : request.path);
    if (!query_.empty()) out.target.append("?").append(query_);
    out.headers.resize(headers);
  }

  std::string region_, service_;
  std::vector<name_value> queries_, headers_;
  std::size_t queries_used_ = 0, headers_used_ = 0;
  std::string date_, scope_, query_, signed_names_, canonical_, to_sign_, authorization_;
  s3_credentials key_of_;
  std::string scope_of_key_;
  digest signing_key_{};
};

}  // namespace penstock::inline v0_1::detail::s3

// ---- penstock/storage/s3/requests/own_copy.hpp

namespace penstock::inline v0_1::detail::s3 {

/// The same error with texts of its own, for another thread.
[[nodiscard, gnu::cold]] inline error own_copy(const error& failure) {
  error made(failure);
  return made.own_texts();
}

}  // namespace penstock::inline v0_1::detail::s3

// ---- penstock/storage/s3/credential_cache.hpp

namespace penstock::inline v0_1::detail::s3 {

/// What the time is; tests have one of their own.
struct wall_clock {
  void* self = nullptr;
  wall_time (*now)(void* self) = [](void*) {
    return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  };
  [[nodiscard]] wall_time operator()() const { return now(self); }
};

/// Keeps credentials and renews them: before they expire, and when a server says that they have. One thread
/// renews; as long as the old ones are valid, others take those and do not wait.
///
/// `Source` has `find(now)`, as `credential_chain`. Threads: any number.
template <class Source>
class credential_cache {
 public:
  /// `seed` spreads renewals, so that a thousand processes do not all ask in the same second.
  explicit credential_cache(Source source, wall_clock clock = {}, std::uint64_t seed = 0)
      : source_(std::move(source)),
        clock_(clock),
        spread_(static_cast<std::int64_t>(seed * 0x9E3779B97F4A7C15u >> 58)) {}

  /// Credentials that are valid, as far as this machine's clock and the last answer of a server say. Throws
  /// what `Source` throws if there are none and no old ones that are still valid; so do all that waited.
  [[nodiscard]] std::shared_ptr<const s3_credentials> current() {
    std::unique_lock lock(mutex_);
    for (;;) {
      const wall_time now = clock_();
      if (valid(now) && now < renew_at_) return kept_;
      if (!renewing_) return renewed(lock, now);
      if (valid(now)) return kept_;
      const std::uint64_t round = rounds_;
      renewed_.wait(lock, [&] { return rounds_ != round; });
      if (failure_) throw own_copy(*failure_);
    }
  }

  /// What `current` would give without waiting; null if credentials must be found or renewed first.
  [[nodiscard]] std::shared_ptr<const s3_credentials> ready() {
    const std::lock_guard lock(mutex_);
    const wall_time now = clock_();
    return valid(now) && (now < renew_at_ || renewing_) ? kept_ : nullptr;
  }

  /// A server said that these, which `current` gave, have expired: they are not given again.
  void expired(const std::shared_ptr<const s3_credentials>& those) {
    const std::lock_guard lock(mutex_);
    if (those == kept_) refused_ = true;
  }

 private:
  static constexpr std::chrono::seconds margin{300}, pause{30};

  [[nodiscard]] bool valid(wall_time now) const {
    return kept_ != nullptr && !refused_ && (!kept_->expires() || now < *kept_->expires());
  }

  [[nodiscard]] std::shared_ptr<const s3_credentials> renewed(std::unique_lock<std::mutex>& lock,
                                                              wall_time now) {
    renewing_ = true;
    lock.unlock();
    std::shared_ptr<const s3_credentials> found;
    std::optional<error> failure;
    try {
      found = std::make_shared<const s3_credentials>(source_.find(now));
    } catch (const error& e) {
      failure = own_copy(e);
    } catch (...) {
      lock.lock();
      end_round(std::nullopt);
      throw;
    }
    lock.lock();
    now = clock_();
    if (found && found->expires() && *found->expires() <= now) {
      failure.emplace(errc::io, "the credentials that were found expired before: check this machine's clock");
    } else if (found && refused_ && *found == *kept_) {
      failure.emplace(error(errc::io,
                            "the store says that the credentials have expired, and there are no newer ones "
                            "where they came from: renew them")
                          .recurring());
    } else if (found) {
      kept_ = std::move(found);
      refused_ = false;
      renew_at_ = wall_time::max();
      if (kept_->expires()) renew_at_ = *kept_->expires() - before(*kept_->expires() - now);
    }
    if (failure && valid(now)) {  // the old ones will do; soon again
      renew_at_ = now + pause;
      failure.reset();
    }
    end_round(failure);
    if (failure_) throw own_copy(*failure_);
    return kept_;
  }
  /// How long before their end credentials of this lifetime are renewed.
  [[nodiscard]] std::chrono::seconds before(std::chrono::seconds lifetime) const {
    return std::min(margin + std::chrono::seconds(spread_), lifetime / 4);
  }
  void end_round(const std::optional<error>& failure) {
    failure_ = failure;
    renewing_ = false;
    ++rounds_;
    renewed_.notify_all();
  }

  Source source_;
  wall_clock clock_;
  std::int64_t spread_;  // seconds, 0 to 63

  std::mutex mutex_;
  std::condition_variable renewed_;
  std::shared_ptr<const s3_credentials> kept_;
  std::optional<error> failure_;  // of the last round
  wall_time renew_at_{};
  std::uint64_t rounds_ = 0;
  bool refused_ = false, renewing_ = false;
};

}  // namespace penstock::inline v0_1::detail::s3

// ---- penstock/storage/s3/environment.hpp

namespace penstock::inline v0_1 {

/// The environment variables that a connection to S3 reads, as they were at one moment. A variable that is
/// empty counts as not set.
///
///     const s3_environment two({{"AWS_REGION", "eu-central-1"}, {"AWS_PROFILE", "training"}});
///     const bool right = two.value("AWS_REGION") == "eu-central-1" && !two.value("AWS_ENDPOINT_URL");
///
/// It may hold secrets: it has no operator<<, and errors name a variable but never its value.
class s3_environment {
 public:
  s3_environment() = default;
  explicit s3_environment(std::vector<std::pair<std::string, std::string>> values) {
    for (auto& [name, given] : values) values_.push_back({std::move(name), std::move(given)});
  }
  /// Those of this process. Call it where no thread changes the environment.
  [[nodiscard]] static s3_environment of_process() {
    s3_environment made;
    for (const char* const name : names)
      if (const char* const given = std::getenv(name)) made.values_.push_back({name, given});
    return made;
  }

  [[nodiscard]] std::optional<std::string_view> value(std::string_view name) const noexcept {
    for (const detail::s3::name_value& one : values_)
      if (one.name == name && !one.value.empty()) return one.value;
    return std::nullopt;
  }

 private:
  static constexpr std::array names{"HOME",
                                    "AWS_ACCESS_KEY_ID",
                                    "AWS_SECRET_ACCESS_KEY",
                                    "AWS_SESSION_TOKEN",
                                    "AWS_PROFILE",
                                    "AWS_REGION",
                                    "AWS_DEFAULT_REGION",
                                    "AWS_ENDPOINT_URL",
                                    "AWS_ENDPOINT_URL_S3",
                                    "AWS_ENDPOINT_URL_STS",
                                    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
                                    "AWS_SHARED_CREDENTIALS_FILE",
                                    "AWS_CONFIG_FILE",
                                    "AWS_WEB_IDENTITY_TOKEN_FILE",
                                    "AWS_ROLE_ARN",
                                    "AWS_ROLE_SESSION_NAME",
                                    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                                    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                                    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
                                    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
                                    "AWS_EC2_METADATA_DISABLED",
                                    "AWS_EC2_METADATA_SERVICE_ENDPOINT"};

  std::vector<detail::s3::name_value> values_;
};

}  // namespace penstock::inline v0_1

// ---- penstock/storage/s3/requests/ini.hpp

namespace penstock::inline v0_1::detail::s3 {

struct ini_entry {
  std::string name;  // in lower case
  std::string value;
  std::vector<name_value> inner;  // the lines that are indented below an entry without a value
};
struct ini_section {
  std::string name;
  std::vector<ini_entry> entries;

  /// The last entry of that name counts, as in the tools of AWS.
  [[nodiscard]] const ini_entry* find(std::string_view name_of) const noexcept {
    for (auto one = entries.rbegin(); one != entries.rend(); ++one)
      if (one->name == name_of) return &*one;
    return nullptr;
  }
};

/// Reads the files ~/.aws/config and ~/.aws/credentials: sections, entries, and entries within an entry.
/// Its errors name the line, and show nothing of it: it may be a secret.
class ini_reader {
 public:
  ini_reader(std::string_view rest, std::string_view path) : rest_(rest), path_(path) {}

  [[nodiscard]] std::vector<ini_section> read() {
    if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);
    while (!rest_.empty()) {
      const std::size_t end = rest_.find('\n');
      std::string_view line = rest_.substr(0, end);
      rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
      ++number_;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!fits(line)) fail("has a control character");
      take_line(line);
    }
    return std::move(sections_);
  }

 private:
  static constexpr std::size_t max_sections = 4096;

  static bool fits(std::string_view line) {
    for (const char c : line)
      if (static_cast<unsigned char>(c) < 0x20 && c != '\t') return false;
    return true;
  }
  [[noreturn]] void fail(std::string_view why) const {
    throw error(errc::argument, {"line ", number_, " of this file of AWS profiles ", why}).in_file(path_);
  }
  static std::string lowered(std::string_view name) {
    std::string line;
    for (const char c : name) line += to_lower(c);
    return line;
  }
  /// Without what follows a blank and a '#' or ';'.
  static std::string_view without_comment(std::string_view line) {
    for (std::size_t i = 1; i < line.size(); ++i)
      if ((line[i] == '#' || line[i] == ';') && is_blank(line[i - 1])) return trimmed(line.substr(0, i));
    return trimmed(line);
  }

  void take_line(std::string_view line) {
    const std::string_view bare = trimmed(line);
    if (bare.empty() || bare.front() == '#' || bare.front() == ';') return;
    const auto indent = static_cast<std::size_t>(bare.data() - line.data());
    if (in_entry_ && indent > indent_) return take_inner(bare);
    in_entry_ = false;
    if (bare.front() == '[') return begin_section(bare);
    if (sections_.empty()) fail("comes before the first [section]");
    const std::size_t sign = bare.find('=');
    if (sign == std::string_view::npos) fail("is neither a [section] nor name = value");
    const std::string_view name = trimmed(bare.substr(0, sign));
    if (name.empty()) fail("has no name before its '='");
    sections_[current_].entries.push_back(
        {lowered(name), std::string(without_comment(bare.substr(sign + 1))), {}});
    indent_ = indent;
    in_entry_ = true;
  }
  void take_inner(std::string_view bare) {
    ini_entry& last = sections_[current_].entries.back();
    const std::size_t sign = bare.find('=');
    if (!last.value.empty()) {
      last.value.append("\n").append(bare);
    } else if (sign == std::string_view::npos || sign == 0) {
      fail("is indented, but no name = value");
    } else {
      last.inner.push_back(
          {lowered(trimmed(bare.substr(0, sign))), std::string(without_comment(bare.substr(sign + 1)))});
    }
  }
  void begin_section(std::string_view bare) {
    const std::size_t end = bare.find(']');
    if (end == std::string_view::npos) fail("begins a section that has no ']'");
    const std::string_view rest = trimmed(bare.substr(end + 1));
    if (!rest.empty() && rest.front() != '#' && rest.front() != ';') fail("has text behind its ']'");
    const std::string_view name = trimmed(bare.substr(1, end - 1));
    if (name.empty()) fail("begins a section without a name");
    for (current_ = 0; current_ < sections_.size(); ++current_)
      if (sections_[current_].name == name) return;
    if (sections_.size() == max_sections) fail("begins one section too many");
    sections_.push_back({std::string(name), {}});
  }

  std::string_view rest_, path_;
  std::vector<ini_section> sections_;
  std::size_t current_ = 0, indent_ = 0, number_ = 0;
  bool in_entry_ = false;
};

/// A small text file as a whole; nothing if there is none. Throws errc::io, marked recurring, for one that
/// cannot be read or is larger than a MiB.
[[nodiscard]] inline std::optional<std::string> small_file(const std::string& path) {
  constexpr std::size_t maximum = std::size_t{1} << 20;
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    throw error(errc::io, "cannot open this file of credentials: check its permissions")
        .in_file(path)
        .recurring();
  }
  std::string bytes(maximum + 1, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (in.bad()) throw error(errc::io, "cannot read this file of credentials").in_file(path).recurring();
  bytes.resize(static_cast<std::size_t>(in.gcount()));
  if (bytes.size() > maximum)
    throw error(errc::io, "this file of credentials is larger than a MiB").in_file(path).recurring();
  return bytes;
}

}  // namespace penstock::inline v0_1::detail::s3

// ---- penstock/storage/s3/profiles.hpp

namespace penstock::inline v0_1::detail::s3 {

/// The profiles of ~/.aws/credentials and ~/.aws/config, or of the files that AWS_SHARED_CREDENTIALS_FILE and
/// AWS_CONFIG_FILE name. A file that is not there has none. What both have, the file of credentials decides.
/// Source: AWS SDKs and Tools Reference Guide, "Using shared config and credentials files".
class profile_files {
 public:
  profile_files() = default;
  /// Reads both. Throws errc::argument for a malformed line, with file and line, and errc::io for a file that
  /// cannot be read.
  explicit profile_files(const s3_environment& environment) {
    credentials_path_ = path_of(environment, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
    config_path_ = path_of(environment, "AWS_CONFIG_FILE", "config");
    credentials_ = sections_of(credentials_path_);
    config_ = sections_of(config_path_);
  }

  [[nodiscard]] bool has(std::string_view profile) const noexcept {
    return in_credentials(profile) != nullptr || in_config(profile) != nullptr;
  }
  [[nodiscard]] std::optional<std::string_view> value(std::string_view profile, std::string_view name) const {
    for (const ini_section* section : {in_credentials(profile), in_config(profile)})
      if (const ini_entry* const found = section == nullptr ? nullptr : section->find(name))
        if (!found->value.empty()) return found->value;
    return std::nullopt;
  }
  /// `endpoint_url` of a service in the section of services that the profile names, or of the profile.
  [[nodiscard]] std::optional<std::string_view> endpoint(std::string_view profile,
                                                         std::string_view service) const {
    if (const auto services = value(profile, "services")) {
      const ini_section* const section = section_of(config_, "services", *services);
      if (section == nullptr)
        throw error(errc::argument, {"the profile '", profile, "' names the services '", *services,
                                     "', but there is no section [services ", *services, "]"})
            .in_file(config_path_);
      if (const ini_entry* const found = section->find(service))
        for (const name_value& one : found->inner)
          if (one.name == "endpoint_url" && !one.value.empty()) return one.value;
    }
    return value(profile, "endpoint_url");
  }

  /// Both files, for messages.
  [[nodiscard]] std::string paths() const { return text({credentials_path_, " and ", config_path_}); }

 private:
  static std::string path_of(const s3_environment& environment, std::string_view variable,
                             std::string_view file_name) {
    const std::string home(environment.value("HOME").value_or(""));
    const auto given = environment.value(variable);
    if (!given) return text({home, "/.aws/", file_name});
    return given->starts_with("~/") ? home + std::string(given->substr(1)) : std::string(*given);
  }
  static std::vector<ini_section> sections_of(const std::string& path) {
    const auto bytes = small_file(path);
    if (!bytes) return {};
    return ini_reader(*bytes, path).read();
  }

  /// The section `[kind name]`; the name may be in quotes.
  static const ini_section* section_of(const std::vector<ini_section>& sections, std::string_view kind,
                                       std::string_view name) noexcept {
    for (const ini_section& one : sections) {
      std::string_view rest = one.name;
      if (!rest.starts_with(kind) || rest.size() == kind.size() || !is_blank(rest[kind.size()])) continue;
      rest = trimmed(rest.substr(kind.size()));
      if (rest.size() > 1 && (rest.front() == '"' || rest.front() == '\'') && rest.front() == rest.back())
        rest = rest.substr(1, rest.size() - 2);
      if (rest == name) return &one;
    }
    return nullptr;
  }
  [[nodiscard]] const ini_section* in_credentials(std::string_view profile) const noexcept {
    for (const ini_section& one : credentials_)
      if (one.name == profile) return &one;
    return nullptr;
  }
  [[nodiscard]] const ini_section* in_config(std::string_view profile) const noexcept {
    if (const ini_section* const found = section_of(config_, "profile", profile)) return found;
    if (profile == "default")
      for (const ini_section& one : config_)
        if (one.name == "default") return &one;
    return nullptr;
  }

  std::string credentials_path_, config_path_;
  std::vector<ini_section> credentials_, config_;
};

/// The profile that counts: AWS_PROFILE, or `default`. Throws errc::argument if AWS_PROFILE names one that no
/// file has.
[[nodiscard]] inline std::string profile_name(const s3_environment& environment, const profile_files& files) {
  const auto given = environment.value("AWS_PROFILE");
  if (!given) return "default";
  if (!files.has(*given))
    throw error(errc::argument,
                {"AWS_PROFILE names the profile '", *given, "', which is not in ", files.paths()});
  return std::string(*given);
}

}  // namespace penstock::inline v0_1::detail::s3

// ---- penstock/storage/s3/requests/names.hpp

namespace penstock::inline v0_1::detail::s3 {

[[noreturn, gnu::cold]] inline void refuse_bucket(std::string_view name, std::string_view why) {
  throw error(errc::argument, {"the bucket '", name.substr(0, 80), "' ", why});
}

/// Whether the name is four numbers with dots between them.
[[nodiscard]] constexpr bool looks_like_ipv4(std::string_view name) noexcept {
  int numbers = 1;
  std::size_t digits = 0;
  for (const char c : name) {
    if (c == '.') {
      if (digits == 0) return false;
      ++numbers;
      digits = 0;
    } else if (!is_digit(c) || ++digits > 3) {
      return false;
    }
  }
  return numbers == 4 && digits != 0;
}

/// Throws errc::argument, with what is wrong, for a name that no bucket can have. `strict` is what AWS
/// demands; other stores, and the oldest buckets of AWS, may have capitals, underscores and 255 characters.
/// Source: Amazon S3 User Guide, "General purpose bucket naming rules".
inline void check_bucket(std::string_view name, bool strict = true) {
  if (name.find_first_of("@:?") != std::string_view::npos && !name.starts_with("arn:"))
    throw error(errc::argument,
                "a bucket's name has no '@', ':' or '?': write s3://bucket/key, and give credentials by the "
                "environment or by options, which no message shows");
  if (name.starts_with("arn:"))
    refuse_bucket(name,
                  "is an ARN, which is not supported: give the access point's alias, or the bucket's name");
  if (name.ends_with("--x-s3"))
    refuse_bucket(name,
                  "is a directory bucket, whose sessions are not supported: use a general purpose bucket");
  if (name.size() < 3) refuse_bucket(name, "is shorter than 3 characters");
  if (name.size() > (strict ? 63u : 255u))
    refuse_bucket(name, strict ? "is longer than 63 characters" : "is longer than 255 characters");
  for (const char c : name) {
    if (is_digit(c) || is_lower(c) || c == '.' || c == '-') continue;
    if (!strict && (is_upper(c) || c == '_')) continue;
    refuse_bucket(name, strict ? "has a character that is no lower-case letter, digit, '.' or '-'"
                               : "has a character that is no letter, digit, '.', '-' or '_'");
  }
  if (name.find("..") != std::string_view::npos) refuse_bucket(name, "has two dots in a row");
  if (!strict) return;
  if (name.front() == '.' || name.front() == '-' || name.back() == '.' || name.back() == '-')
    refuse_bucket(name, "must begin and end with a letter or a digit");
  if (looks_like_ipv4(name)) refuse_bucket(name, "has the form of an IP address");
  if (name.starts_with("xn--") || name.starts_with("sthree-"))
    refuse_bucket(name, "begins with letters that AWS reserves");
}

/// Where an object is.
struct object_name {
  std::string_view bucket;
  std::string_view key;
};

/// `bucket/key` or `s3://bucket/key`, of which the object's key is everything after the first slash, as it
/// is: nothing is decoded, and `?` and `#` belong to it. Throws errc::argument that says what to write.
[[nodiscard]] inline object_name parse_object_name(std::string_view name) {
  const std::string_view given = name;
  if (name.starts_with("s3://")) {
    name.remove_prefix(5);
  } else if (name.substr(0, name.find('/')).ends_with(':')) {
    throw error(errc::argument,
                {"'", given.substr(0, name.find(':')),
                 ":' is not the scheme of an object in S3: write s3://bucket/key or bucket/key"});
  }
  const std::size_t slash = name.find('/');
  const bool plain = given.find_first_of("@?") == std::string_view::npos && name.find(':') == name.npos;
  const std::string shown =
      plain ? text({"'", given.substr(0, 200), "' is "}) : std::string("the name of an object in S3 is ");
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == name.size())
    throw error(errc::argument, {shown, slash == 0 ? "without a bucket" : "without a key",
                                 ": write s3://bucket/key or bucket/key"});
  const object_name found{name.substr(0, slash), name.substr(slash + 1)};
  if (found.key.size() > 1024)
    throw error(errc::argument, {"a key of S3 has at most 1024 bytes, '", found.key.substr(0, 80),
                                 "...' has ", found.key.size()});
  return found;
}

}  // namespace penstock::inline v0_1::detail::s3

// ---- penstock/storage/s3/endpoint.hpp

namespace penstock::inline v0_1 {

/// Where the bucket is in a request's URL: in the host, `https://BUCKET.s3.REGION.amazonaws.com/KEY`, or in
/// the path. `automatic`: in the host at AWS if the bucket's name permits, in the path at other stores.
enum class s3_addressing { automatic, host, path };

/// Where a store is. What is left empty comes from the environment, then from the profile:
/// AWS_REGION, AWS_DEFAULT_REGION, `region`, else us-east-1;
/// AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the `endpoint_url` of the profile's services or of the profile,
/// else AWS.
///
///     const s3_place google{.region = "auto", .endpoint = "https://storage.googleapis.com"};
struct s3_place {
  std::string region = {};
  /// `http://host:port`, perhaps with a path before all others, as AIStore's `/s3`.
  std::string endpoint = {};
  s3_addressing addressing = s3_addressing::automatic;
};

namespace detail::s3 {

/// Fills what is empty; see `s3_place`. AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true leaves endpoints out.
[[nodiscard]] inline s3_place resolved(s3_place place, const s3_environment& environment,
                                       const profile_files& files, std::string_view profile) {
  const auto first_of = [](std::optional<std::string_view> one, std::optional<std::string_view> other) {
    return one ? one : other;
  };
  if (place.region.empty()) {
    auto found = first_of(environment.value("AWS_REGION"), environment.value("AWS_DEFAULT_REGION"));
    if (!found) found = files.value(profile, "region");
    place.region = found.value_or("us-east-1");
  }
  const bool ignored =
      equal_but_for_case(environment.value("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS").value_or(""), "true");
  if (place.endpoint.empty() && !ignored) {
    auto found = first_of(environment.value("AWS_ENDPOINT_URL_S3"), environment.value("AWS_ENDPOINT_URL"));
    if (!found) found = files.endpoint(profile, "s3");
    place.endpoint = found.value_or("");
  }
  return place;
}

inline void check_region(std::string_view region) {
  const auto fits = [](char c) { return is_digit(c) || is_lower(c) || is_upper(c) || c == '-' || c == '_'; };
  bool good = !region.empty() && region.size() <= 64;
  for (const char c : region) good = good && fits(c);
  if (!good)
    throw error(errc::argument,
                {"'", region.substr(0, 80), "' is not a region: write a name such as us-east-1"});
}

/// The domain of AWS that a region belongs to.
[[nodiscard]] constexpr std::string_view aws_domain(std::string_view region) noexcept {
  return region.starts_with("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
}

/// Turns buckets and keys into URLs. Its paths are encoded as `aws_signer` signs them.
class endpoint {
 public:
  /// Throws errc::argument for a region or an endpoint that can be none.
  explicit endpoint(const s3_place& place) : region_(place.region), addressing_(place.addressing) {
    check_region(region_);
    is_aws_ = place.endpoint.empty();
    if (is_aws_) {
      if (region_ == "auto")
        throw error(errc::argument,
                    "the region 'auto' is for stores that are not AWS: give their endpoint as well, "
                    "such as https://storage.googleapis.com");
      base_.scheme = "https";
      base_.host = text({"s3.", region_, ".", aws_domain(region_)});
      return;
    }
    base_ = parse_url(place.endpoint);
    if (base_.scheme == "s3")
      throw error(errc::argument, {"the endpoint '", without_secrets(place.endpoint),
                                   "' must begin with http:// or https://"});
    if (!base_.query.empty())
      throw error(errc::argument, {"the endpoint '", without_secrets(place.endpoint),
                                   "' has a query: give scheme, host, port and perhaps a path"});
    while (base_.path.ends_with('/')) base_.path.pop_back();
    const std::string_view host = base_.host;
    is_aws_ = host.ends_with(".amazonaws.com") || host.ends_with(".amazonaws.com.cn");
  }

  /// What requests are signed for.
  [[nodiscard]] const std::string& region() const noexcept { return region_; }
  /// Whether only TLS protects the body, so that it need not be hashed.
  [[nodiscard]] bool is_encrypted() const noexcept { return base_.scheme == "https"; }

  /// Throws errc::argument for a name that no bucket can have.
  [[nodiscard]] url of_bucket(std::string_view bucket) const { return of(bucket, {}); }
  [[nodiscard]] url of_object(std::string_view bucket, std::string_view object) const {
    return of(bucket, object);
  }

 private:
  [[nodiscard]] url of(std::string_view bucket, std::string_view object) const {
    const bool in_host = is_in_host(bucket);
    url made = base_;
    if (in_host) {
      made.host.insert(0, ".").insert(0, bucket);
    } else {
      made.path.append("/").append(bucket);
    }
    if (in_host || !object.empty()) made.path += '/';
    append_encoded(made.path, object, true);
    return made;
  }
  [[nodiscard]] bool is_in_host(std::string_view bucket) const {
    check_bucket(bucket, is_aws_ && addressing_ != s3_addressing::path);
    const bool has_dots = bucket.find('.') != std::string_view::npos;
    if (addressing_ == s3_addressing::host) {
      check_bucket(bucket);
      if (base_.host.find(':') != std::string::npos || looks_like_ipv4(base_.host))
        throw error(errc::argument,
                    {"the endpoint's host is an address, before which no bucket can stand: use "
                     "s3_addressing::path"});
      if (has_dots && is_encrypted())
        throw error(errc::argument,
                    {"the bucket '", bucket,
                     "' has dots, so that no certificate fits its host: use s3_addressing::path"});
      return true;
    }
    return addressing_ == s3_addressing::automatic && is_aws_ && !(has_dots && is_encrypted());
  }

  url base_;
  std::string region_;
  s3_addressing addressing_;
  bool is_aws_ = false;
};

}  // namespace detail::s3

}  // namespace penstock::inline v0_1

// ---- penstock/storage/s3/requests/xml.hpp

namespace penstock::inline v0_1::detail::s3 {

/// What makes a body no XML of a store: its size, a document type, or its form.
struct xml_fault {
  std::string_view why;
  std::size_t offset = 0;
};

/// Parses the body of an answer. pugixml knows no entities of a document's own and does not recurse; here a
/// body is refused before it is parsed if it has such entities, or more than `max_tags`, or attributes, so
/// that its memory stays within a small multiple of `max_bytes`.
[[nodiscard]] inline std::optional<xml_fault> load_xml(pugi::xml_document& document, std::string_view body) {
  constexpr std::size_t max_bytes = std::size_t{8} << 20;
  constexpr std::ptrdiff_t max_tags = 200'000;  // a full page of a list has about 30,000
  // Two for an attribute; a full page whose keys were nothing but quotation marks would have a million.
  constexpr std::ptrdiff_t max_quotes = 1'200'000;
  if (body.size() > max_bytes) return xml_fault{"it is larger than 8 MiB", max_bytes};
  if (const std::size_t zero = body.find('\0'); zero != std::string_view::npos)
    return xml_fault{"it has a zero byte", zero};
  if (const std::size_t type = body.find("<!DOCTYPE"); type != std::string_view::npos)
    return xml_fault{"it declares a document type, which no store does", type};
  if (std::count(body.begin(), body.end(), '<') > max_tags)
    return xml_fault{"it has more than 200,000 tags", 0};
  if (std::count(body.begin(), body.end(), '"') + std::count(body.begin(), body.end(), '\'') > max_quotes)
    return xml_fault{"it has more than 600,000 attributes", 0};
  constexpr unsigned how = pugi::parse_cdata | pugi::parse_escapes | pugi::parse_ws_pcdata_single;
  const pugi::xml_parse_result found =
      document.load_buffer(body.data(), body.size(), how, pugi::encoding_utf8);
  if (found.status == pugi::status_out_of_memory) throw std::bad_alloc();
  if (!found)
    return xml_fault{found.description(),
                     static_cast<std::size_t>(std::max<std::ptrdiff_t>(found.offset, 0))};
  return std::nullopt;
}

/// The characters directly in an element.
[[nodiscard]] inline std::string characters_of(const pugi::xml_node& element) {
  std::string line;
  for (const pugi::xml_node& inner : element.children())
    if (inner.type() == pugi::node_pcdata || inner.type() == pugi::node_cdata) line += inner.value();
  return line;
}

/// A document that must be well-formed: an answer with status 200. What is wrong with it may be different
/// when it is asked for again, so that its errors are errc::io and do not recur.
class xml_answer {
 public:
  /// `what` names the answer in errors: "the list of objects".
  xml_answer(std::string_view body, std::string_view what) : what_(what) {
    if (const auto fault = load_xml(document_, body))
      throw error(errc::io, {what_, " is not the XML of a store: ", fault->why, ", at byte ", fault->offset});
  }
  [[nodiscard]] pugi::xml_node root() const { return document_.document_element(); }
  /// The root, which must have that name.
  [[nodiscard]] pugi::xml_node root(const char* name) const {
    const pugi::xml_node found = root();
    if (std::string_view(found.name()) != name) fail({"has another root than <", name, ">"});
    return found;
  }
  /// What is in the element `name`; it must be there, and have characters.
  [[nodiscard]] std::string required(const pugi::xml_node& within, const char* name) const {
    std::string found = characters_of(within.child(name));
    if (found.empty())
      fail({"has no <", name, "> in its <", std::string_view(within.name()).substr(0, 40), ">"});
    return found;
  }
  [[noreturn, gnu::cold]] void fail(std::initializer_list<piece> why) const {
    std::string line(what_);
    line += ' ';
    append(line, why);
    throw error(errc::io, line);
  }

 private:
  std::string_view what_;
  pugi::xml_document document_;
};

}  // namespace penstock::inline v0_1::detail::s3

// ---- penstock/storage/s3/error_result.hpp

namespace penstock::inline v0_1 {

/// What can be done about an answer that is an error.
enum class s3_remedy {
  retry,                ///< send it again, after a while
  slow_down,            ///< the same, and send fewer at once
  refresh_credentials,  ///< get new credentials, then send it again
  resync_clock,         ///< take the time from the answer's Date, then send it again
  other_region,         ///< sign for the region that the answer names, then send it again
  none                  ///< the same request would fail again
};

namespace detail::s3 {

/// An answer that is an error. The server's own sentence is left out: it may repeat what was signed.
struct refusal {
  int status = 0;
  std::string code;     // as the store spells it, only letters and digits; empty where the body has none
  std::string request;  // the store's number of the request, for its operators
  std::string region;   // where the bucket is, if the store says so
  s3_remedy remedy = s3_remedy::none;
  std::optional<std::chrono::seconds> retry_after;
  std::optional<wall_time> server_time;
};

/// The remedy for a code; nothing for a code that is not known, whose status decides.
/// Source: Amazon S3 API Reference, "Error responses"; the retry conditions of AWS SDKs' standard mode.
[[nodiscard]] inline std::optional<s3_remedy> remedy_of(std::string_view code) noexcept {
  struct row {
    std::string_view code;
    s3_remedy remedy;
  };
  static constexpr std::array rows{
      row{"SlowDown", s3_remedy::slow_down},
      row{"ServiceUnavailable", s3_remedy::slow_down},
      row{"Busy", s3_remedy::slow_down},
      row{"RequestLimitExceeded", s3_remedy::slow_down},
      row{"TooManyRequests", s3_remedy::slow_down},
      row{"TooManyRequestsException", s3_remedy::slow_down},
      row{"BandwidthLimitExceeded", s3_remedy::slow_down},
      row{"LimitExceededException", s3_remedy::slow_down},
      row{"InternalError", s3_remedy::retry},
      row{"RequestTimeout", s3_remedy::retry},
      row{"RequestTimeoutException", s3_remedy::retry},
      row{"PriorRequestNotComplete", s3_remedy::retry},
      row{"OperationAborted", s3_remedy::retry},
      row{"ConditionalRequestConflict", s3_remedy::retry},
      row{"BadDigest", s3_remedy::retry},  // a body that changed on its way
      row{"XAmzContentSHA256Mismatch", s3_remedy::retry},
      row{"XAmzContentChecksumMismatch", s3_remedy::retry},
      row{"IncompleteBody", s3_remedy::retry},
      row{"KMS.DependencyTimeoutException", s3_remedy::retry},
      row{"KMS.KMSInternalException", s3_remedy::retry},
      row{"KMS.KeyUnavailableException", s3_remedy::retry},
      row{"IDPCommunicationError", s3_remedy::retry},
      row{"ExpiredToken", s3_remedy::refresh_credentials},
      row{"ExpiredTokenException", s3_remedy::refresh_credentials},
      row{"TokenRefreshRequired", s3_remedy::refresh_credentials},
      row{"RequestTimeTooSkewed", s3_remedy::resync_clock},
      row{"RequestExpired", s3_remedy::resync_clock},
      row{"PermanentRedirect", s3_remedy::other_region},
      row{"AuthorizationHeaderMalformed", s3_remedy::other_region},
      row{"IllegalLocationConstraintException", s3_remedy::other_region},
      row{"AccessDenied", s3_remedy::none},
      row{"NoSuchKey", s3_remedy::none},
      row{"NoSuchBucket", s3_remedy::none},
      row{"NoSuchUpload", s3_remedy::none},
      row{"NoSuchVersion", s3_remedy::none},
      row{"InvalidAccessKeyId", s3_remedy::none},
      row{"InvalidToken", s3_remedy::none},
      row{"SignatureDoesNotMatch", s3_remedy::none},
      row{"InvalidObjectState", s3_remedy::none},
      row{"PreconditionFailed", s3_remedy::none},
      row{"InvalidRange", s3_remedy::none},
      row{"NotImplemented", s3_remedy::none},
  };
  // Throttling, ThrottlingException, KMS.ThrottlingException, RequestThrottled and others
  if (code.find("Throttl") != std::string_view::npos) return s3_remedy::slow_down;
  for (const row& one : rows)
    if (one.code == code) return one.remedy;
  return std::nullopt;
}
[[nodiscard]] constexpr s3_remedy remedy_of(int status) noexcept {
  if (status == 429 || status == 503) return s3_remedy::slow_down;
  return status > 0 && may_pass(static_cast<unsigned>(status)) ? s3_remedy::retry : s3_remedy::none;
}

/// What a store gave, if it has no other characters than such a value has, so that nothing else is repeated.
[[nodiscard]] inline std::string only(std::string_view given, std::size_t maximum, std::string_view besides) {
  const bool fits =
      given.size() <= maximum && std::all_of(given.begin(), given.end(), [besides](char c) {
        return is_digit(c) || is_lower(c) || is_upper(c) || besides.find(c) != std::string_view::npos;
      });
  return fits ? std::string(given) : std::string();
}

/// Reads an answer with a status that is no success, or a 200 whose body is an `<Error>`. Any bytes are an
/// answer: one without a body, as to HEAD, is judged by its status. `signed_for` is the region of the
/// request.
[[nodiscard]] inline refusal read_refusal(const http_answer& answer, std::string_view signed_for = {}) {
  refusal found;
  found.status = answer.status;
  if (const auto region = header_of(answer.headers, "x-amz-bucket-region"))
    found.region = only(*region, 64, "-");
  if (const auto id = header_of(answer.headers, "x-amz-request-id")) found.request = only(*id, 128, "-+/=._");
  if (const auto date = header_of(answer.headers, "date")) found.server_time = parse_http_date(*date);
  if (const auto after = header_of(answer.headers, "retry-after")) {
    long seconds = 0;
    const bool is_number =
        !after->empty() && after->size() <= 6 && std::all_of(after->begin(), after->end(), is_digit);
    for (const char c : *after) seconds = is_number ? seconds * 10 + (c - '0') : 0;
    if (is_number) {
      found.retry_after = std::chrono::seconds(seconds);
    } else if (const auto then = parse_http_date(*after); then && found.server_time) {
      found.retry_after = std::max(*then - *found.server_time, std::chrono::seconds(0));
    }
    if (found.retry_after)
      found.retry_after = std::min<std::chrono::seconds>(*found.retry_after, std::chrono::hours(24));
  }
  constexpr std::size_t maximum = std::size_t{1} << 20;
  pugi::xml_document document;
  if (!answer.body.empty() && answer.body.size() <= maximum && !load_xml(document, answer.body)) {
    pugi::xml_node body = document.document_element();
    if (std::string_view(body.name()) == "ErrorResponse") body = body.child("Error");  // of STS
    if (std::string_view(body.name()) == "Error") {
      found.code = only(characters_of(body.child("Code")), 64, ".");
      if (found.request.empty()) found.request = only(characters_of(body.child("RequestId")), 128, "-+/=._");
      if (found.region.empty()) found.region = only(characters_of(body.child("Region")), 64, "-");
    }
  }
  found.remedy = remedy_of(found.code).value_or(remedy_of(found.status));
  // The answer to HEAD has no code; and an answer may say nothing about the right region.
  const bool names_another = !found.region.empty() && found.region != signed_for;
  if (found.code.empty() && (found.status == 301 || found.status == 400))
    found.remedy = s3_remedy::other_region;
  if (found.remedy == s3_remedy::other_region && !names_another) found.remedy = s3_remedy::none;
  if (found.remedy == s3_remedy::resync_clock && !found.server_time) found.remedy = s3_remedy::none;
  return found;
}

/// What a person can do about it.
[[nodiscard]] inline std::string_view advice_of(const refusal& found) noexcept {
  struct row {
    std::string_view code, advice;
  };
  static constexpr std::array rows{
      row{"AccessDenied",
          ": the credentials do not permit this, or there is no such object and they may not list"},
      row{"NoSuchKey", ": there is no such object"},
      row{"NoSuchBucket", ": there is no such bucket"},
      row{"NoSuchUpload", ": the upload was aborted or completed before"},
      row{"InvalidAccessKeyId", ": the store does not know these credentials; are they for this endpoint?"},
      row{"InvalidToken", ": the session token is not one of these credentials"},
      row{"SignatureDoesNotMatch",
          ": the secret is not the one of this key id, or a proxy changed the request"},
      row{"InvalidObjectState", ": the object is archived, restore it first"},
      row{"PreconditionFailed", ": the object was replaced while it was read"},
      row{"InvalidRange", ": the object ends before this range"},
      row{"ExpiredToken", ": the session token has expired, get new credentials"},
      row{"ExpiredTokenException", ": the session token has expired, get new credentials"},
      row{"RequestTimeTooSkewed", ": this machine's clock is more than 15 minutes wrong, set it"},
      row{"PermanentRedirect", ": the bucket is in another region"},
      row{"AuthorizationHeaderMalformed",
          ": the bucket is in another region, or the region has another name"},
  };
  for (const row& one : rows)
    if (one.code == found.code) return one.advice;
  switch (found.status) {
    case 301:
      return ": the bucket is in another region, or at another endpoint";
    case 401:
    case 403:
      return ": the credentials are not accepted, or do not permit this";
    case 404:
      return ": there is no such object";
    case 412:
      return ": the object was replaced while it was read";
    case 416:
      return ": the object ends before this range";
    default:
      return "";
  }
}

/// The error for what was refused: errc::io that recurs where there is no remedy. `what` was to happen:
/// "read an object".
[[nodiscard]] inline error error_of(const refusal& found, std::string_view what) {
  std::string line = text({"the store refused to ", what, ": status ", found.status});
  if (!found.code.empty()) append(line, {", ", found.code});
  line += advice_of(found);
  if (found.remedy == s3_remedy::other_region) append(line, {"; it is in ", found.region});
  if (!found.request.empty()) append(line, {" (request ", found.request, ")"});
  error made(errc::io, line);
  static_cast<void>(std::move(made).recurring(found.remedy == s3_remedy::none));
  if (found.remedy == s3_remedy::slow_down) {
    const std::chrono::milliseconds pause = found.retry_after.value_or(std::chrono::seconds(0));
    static_cast<void>(std::move(made).asked_to_wait(static_cast<std::uint64_t>(pause.count())));
  }
  if (found.status == 408 || found.status == 504 || found.code.starts_with("RequestTimeout"))
    static_cast<void>(std::move(made).after_time_out());
  return made;
}

}  // namespace detail::s3

}  // namespace penstock::inline v0_1

// ---- penstock/storage/s3/requests/http_call.hpp

namespace penstock::inline v0_1::detail::s3 {

/// A request as a whole. It may hold tokens: nothing prints it.
struct http_request {
  std::string method = "GET";
  url to;
  std::vector<name_value> headers;
  std::string body;
  /// When the answer must have come, from the call on; then `send` throws errc::io.
  std::chrono::milliseconds deadline{1000};
  /// The answer is cut off as errc::io if its body is longer.
  std::size_t max_body_size = std::size_t{1} << 20;
};

/// Who sends small requests for whoever needs credentials or a list, and waits for the answer. `send` follows
/// no redirect, throws errc::io when there is no answer, and may be called by several threads.
struct http_call {
  void* self = nullptr;
  http_answer (*send)(void* self, const http_request& request) = nullptr;

  [[nodiscard]] http_answer operator()(const http_request& request) const { return send(self, request); }
};

}  // namespace penstock::inline v0_1::detail::s3

// ---- penstock/storage/s3/requests/credential_answers.hpp

namespace penstock::inline v0_1::detail::s3 {

/// Who is told the time of a server that refused ours.
struct clock_listener {
  void* self = nullptr;
  void (*told)(void* self, wall_time server) = nullptr;
  void operator()(wall_time server) const {
    if (told != nullptr) told(self, server);
  }
};

/// What the sources of credentials read from.
struct credential_surroundings {
  const s3_environment& environment;
  const profile_files& files;
  http_call http;
  wall_time now{};
  std::string region;  // of STS
  /// Learns what a server's clock says if ours is wrong; may be empty.
  clock_listener clock;
  /// Whether the instance metadata has ever answered.
  bool* metadata_answers = nullptr;
};

/// The same credentials, or errc::argument that names their source if a part of them is missing or no header
/// could carry it, such as a line break at its end.
[[nodiscard]] inline s3_credentials checked(s3_credentials found, std::string_view source) {
  if (found.key_id().empty()) throw error(errc::argument, {source, " has a secret, but no key id"});
  if (found.secret().empty()) throw error(errc::argument, {source, " has a key id, but no secret"});
  if (!fits_into_header(found.key_id()) || !fits_into_header(found.secret()) ||
      !fits_into_header(found.session_token()) || found.key_id().find_first_of(" /,") != std::string::npos)
    throw error(errc::argument,
                {source, " has characters that credentials cannot have, perhaps a line break at the end"});
  return found;
}

[[nodiscard]] inline std::optional<wall_time> end_of(const std::string& date, std::string_view source) {
  if (date.empty()) return std::nullopt;
  const auto found = parse_rfc3339(date);
  if (!found) throw error(errc::io, {source, " answered with an expiration that is no date"});
  return found;
}

/// The answer of a container's or an instance's service: JSON with AccessKeyId, SecretAccessKey, Token and
/// Expiration.
[[nodiscard]] inline s3_credentials read_json_credentials(std::string_view body, std::string_view source) {
  const nlohmann::json all = nlohmann::json::parse(body.begin(), body.end(), nullptr, false);
  if (!all.is_object()) throw error(errc::io, {source, " answered with something that is no JSON object"});
  const auto text_in = [&](const char* name) {
    const auto found = all.find(name);
    if (found == all.end() || found->is_null()) return std::string();
    if (!found->is_string()) throw error(errc::io, {source, " answered with no text in the field ", name});
    return found->get<std::string>();
  };
  if (const std::string code = text_in("Code"); !code.empty() && code != "Success")
    throw error(errc::io, {source, " has no credentials: ", only(code, 64, ".")});
  std::string id = text_in("AccessKeyId"), secret = text_in("SecretAccessKey");
  if (id.empty() || secret.empty())
    throw error(errc::io,
                {source, " answered without the field ", id.empty() ? "AccessKeyId" : "SecretAccessKey"});
  return checked({std::move(id), std::move(secret), text_in("Token"), end_of(text_in("Expiration"), source)},
                 source);
}

/// The answer of STS, in which `result` has the credentials.
[[nodiscard]] inline s3_credentials read_sts_credentials(std::string_view body, const char* result) {
  constexpr std::string_view source = "STS";
  const xml_answer answer(body, "the answer of STS");
  const pugi::xml_node found = answer.root().child(result).child("Credentials");
  if (!found) answer.fail({"has no <Credentials> in a <", result, ">"});
  return checked(
      {answer.required(found, "AccessKeyId"), answer.required(found, "SecretAccessKey"),
       answer.required(found, "SessionToken"), end_of(answer.required(found, "Expiration"), source)},
      source);
}

/// A token in a file, without the line break at its end.
[[nodiscard]] inline std::string token_in(const std::string& path, std::string_view named_by) {
  auto bytes = small_file(path);
  if (!bytes) throw error(errc::io, {named_by, " names a file that is not there"}).in_file(path).recurring();
  while (!bytes->empty() && (is_blank(bytes->back()) || bytes->back() == '\n' || bytes->back() == '\r'))
    bytes->pop_back();
  if (bytes->empty() || !fits_into_header(*bytes))
    throw error(errc::io, {named_by, " names a file that holds no token"}).in_file(path).recurring();
  return std::move(*bytes);
}

}  // namespace penstock::inline v0_1::detail::s3

// ---- penstock/storage/s3/requests/metadata_credentials.hpp

namespace penstock::inline v0_1::detail::s3 {

/// Whether a service of credentials may be asked without encryption: it is on this machine, or has one of the
/// addresses of ECS and EKS.
[[nodiscard]] inline bool is_near(const std::string& host) {
  if (host == "localhost") return true;
  std::array<unsigned char, 4> four{};
  if (::inet_pton(AF_INET, host.c_str(), four.data()) == 1)
    return four[0] == 127 || host == "169.254.170.2" || host == "169.254.170.23";
  std::array<unsigned char, 16> given{}, near{};
  if (::inet_pton(AF_INET6, host.c_str(), given.data()) != 1) return false;
  for (const char* const address : {"::1", "fd00:ec2::23"})
    if (::inet_pton(AF_INET6, address, near.data()) == 1 && given == near) return true;
  return false;
}

/// What a container's variable names. Its path may hold an id that gives credentials to whoever knows it, so
/// no error shows it.
[[nodiscard]] inline url container_url(std::string_view text, std::string_view variable) {
  try {
    return parse_url(text);
  } catch (const error& e) {
    if (e.message().find("names a user or a password") != std::string_view::npos) throw;
    throw error(errc::argument, {variable,
                                 " is no URL of http or https, or has characters that must be "
                                 "percent-encoded"});
  }
}
/// Asks it; the errors of `http` name the host instead of the URL.
[[nodiscard]] inline http_answer ask_container(const http_call& http, const http_request& request,
                                               std::string_view source) {
  try {
    return http(request);
  } catch (const error& e) {
    const std::string_view why = e.message(), path = request.to.path;
    const bool shows = path.size() > 1 && why.find(path) != std::string_view::npos;
    throw error(e.code(), {source, " at ", request.to.authority(), ": ", shows ? "nobody answers" : why})
        .recurring(e.recurs());
  }
}

/// The service of a container: ECS, EKS Pod Identity, and what imitates them.
[[nodiscard]] inline std::optional<s3_credentials> of_container(const credential_surroundings& with) {
  constexpr std::string_view source = "the container's service of credentials";
  const auto relative = with.environment.value("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  const auto full = with.environment.value("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (!relative && !full) return std::nullopt;
  http_request request;
  if (relative) {
    if (!relative->starts_with('/'))
      throw error(errc::argument, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI does not begin with '/'");
    request.to = container_url("http://169.254.170.2" + std::string(*relative),
                               "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  } else {
    request.to = container_url(*full, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
    if (request.to.scheme != "https" && (request.to.scheme != "http" || !is_near(request.to.host)))
      throw error(errc::argument, {"AWS_CONTAINER_CREDENTIALS_FULL_URI names the host '", request.to.host,
                                   "' without encryption: use https, or a service on this machine"});
  }
  std::string token(with.environment.value("AWS_CONTAINER_AUTHORIZATION_TOKEN").value_or(""));
  if (const auto file_name = with.environment.value("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"))
    token = token_in(std::string(*file_name), "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  if (!fits_into_header(token))
    throw error(errc::argument, "AWS_CONTAINER_AUTHORIZATION_TOKEN has characters that no header can have");
  request.headers = {{"accept", "application/json"}};
  if (!token.empty()) request.headers.push_back({"authorization", token});
  request.deadline = std::chrono::seconds(2);
  const http_answer answer = ask_container(with.http, request, source);
  if (answer.status != 200)
    throw error(errc::io, {source, " answered with status ", answer.status})
        .recurring(remedy_of(answer.status) == s3_remedy::none);
  return read_json_credentials(answer.body, source);
}

/// The instance metadata of EC2, version 2 only. Nothing if this is no such machine, or has no role. Its
/// services lose a request now and then: one without an answer is sent up to three times, and is an error
/// that may pass if there ever was an answer.
[[nodiscard]] inline std::optional<s3_credentials> of_instance(const credential_surroundings& with) {
  constexpr std::string_view source = "the instance metadata";
  if (equal_but_for_case(with.environment.value("AWS_EC2_METADATA_DISABLED").value_or(""), "true"))
    return std::nullopt;
  const url base = parse_url(
      with.environment.value("AWS_EC2_METADATA_SERVICE_ENDPOINT").value_or("http://169.254.169.254"));
  bool answers = with.metadata_answers != nullptr && *with.metadata_answers;
  const auto ask = [&](std::string method, std::string_view path, name_value header) {
    http_request request;
    request.method = std::move(method);
    request.to = base;
    request.to.path = path;
    request.to.query.clear();
    request.headers.push_back(std::move(header));
    request.deadline = std::chrono::seconds(1);  // a machine that is not of EC2 may drop the packets
    // Elsewhere nobody is there, which shows at once, or packets are dropped.
    const bool sure = answers;
    return retrier({.attempts = sure ? 3u : 2u}).insist([&] {
      try {
        http_answer found = with.http(request);
        if (found.status == 200) answers = true;
        if (answers && with.metadata_answers != nullptr) *with.metadata_answers = true;
        return found;
      } catch (error& e) {
        if (!sure && !e.timed_out()) std::move(e).recurring();
        throw;
      }
    });
  };
  http_answer token;
  try {
    token = ask("PUT", "/latest/api/token", {"x-aws-ec2-metadata-token-ttl-seconds", "21600"});
  } catch (const error& e) {
    if (e.code() != errc::io) throw;
    if (answers) throw error(errc::io, {source, " does not answer any more: ", e.message()});
    return std::nullopt;
  }
  if (token.status == 429 || token.status >= 500)  // it is there, and busy
    throw error(errc::io, {source, " answered with status ", token.status});
  if (token.status != 200 || token.body.empty() || !fits_into_header(token.body)) return std::nullopt;
  const name_value proof{"x-aws-ec2-metadata-token", token.body};
  std::string path = "/latest/meta-data/iam/security-credentials/";
  const http_answer roles = ask("GET", path, proof);
  if (roles.status == 404) return std::nullopt;
  const std::string role =
      only(trimmed(std::string_view(roles.body).substr(0, roles.body.find_first_of("\r\n"))), 128, "+=,.@-_");
  if (roles.status != 200 || role.empty())
    throw error(errc::io, {source, " answered with status ", roles.status, ", and with no name of a role"});
  append_encoded(path, role);
  const http_answer found = ask("GET", path, proof);
  if (found.status != 200) throw error(errc::io, {source, " answered with status ", found.status});
  return read_json_credentials(found.body, source);
}

}  // namespace penstock::inline v0_1::detail::s3

// ---- penstock/storage/s3/requests/role_credentials.hpp

namespace penstock::inline v0_1::detail::s3 {

/// A role to take on.
struct role_request {
  std::string arn;
  std::string session;      // empty: a name is made
  std::string external_id;  // may be empty
};

[[nodiscard]] inline url sts_url(const credential_surroundings& with) {
  auto given = with.environment.value("AWS_ENDPOINT_URL_STS");
  if (!given) given = with.environment.value("AWS_ENDPOINT_URL");
  if (equal_but_for_case(with.environment.value("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS").value_or(""), "true"))
    given.reset();
  if (given) {
    const url found = parse_url(*given);
    if (!found.query.empty())
      throw error(errc::argument, {"AWS_ENDPOINT_URL_STS or AWS_ENDPOINT_URL has a query, which no signature "
                                   "covers: remove what follows ",
                                   found.without_secrets()});
    return found;
  }
  url made;
  made.scheme = "https";
  made.host = text({"sts.", with.region, ".", aws_domain(with.region)});
  made.path = "/";
  return made;
}

/// Whether a request was refused because this machine's clock is wrong. STS says so by the code of a wrong
/// signature, too; then the clocks must differ by most of the five minutes that STS allows.
[[nodiscard]] inline bool refuses_clock(const refusal& found, wall_time now) {
  if (!found.server_time) return false;
  if (found.remedy == s3_remedy::resync_clock) return true;
  const auto apart = std::max(*found.server_time - now, now - *found.server_time);
  return apart > std::chrono::minutes(4) &&
         (found.code == "SignatureDoesNotMatch" || found.code == "InvalidSignatureException" ||
          found.code == "RequestInTheFuture" || found.code == "AuthFailure");
}

/// Sends an action of STS, signed unless `as` is anonymous, and reads its credentials. A request that is
/// refused because of the time is sent once more, with that of the answer.
[[nodiscard]] inline s3_credentials ask_sts(const credential_surroundings& with, std::string_view action,
                                            const role_request& role, std::span<const name_value> more,
                                            const s3_credentials& as) {
  check_region(with.region);
  http_request request;
  request.method = "POST";
  request.to = sts_url(with);
  request.deadline = std::chrono::seconds(10);
  request.headers = {{"content-type", "application/x-www-form-urlencoded; charset=utf-8"}};
  const std::string made = text({"penstock-", with.now.time_since_epoch().count()});
  std::vector<name_value> form{{"Action", std::string(action)},
                               {"Version", "2011-06-15"},
                               {"RoleArn", role.arn},
                               {"RoleSessionName", role.session.empty() ? made : role.session}};
  if (!role.external_id.empty()) form.push_back({"ExternalId", role.external_id});
  form.insert(form.end(), more.begin(), more.end());
  for (const name_value& one : form) {
    if (!request.body.empty()) request.body += '&';
    append_encoded(request.body, one.name);
    request.body += '=';
    append_encoded(request.body, one.value);
  }
  const auto ask = [&](wall_time now) {
    http_request sent = request;
    if (!as.anonymous()) {
      aws_signer signer(with.region, "sts");
      const std::string host = request.to.authority(), hash = payload_hash(request.body);
      signed_request made_of;
      signer.sign({"POST", host, request.to.path, {}, request.headers, hash}, as, now, made_of);
      sent.headers.insert(sent.headers.end(), made_of.headers.begin(), made_of.headers.end());
    }
    return with.http(sent);
  };
  http_answer answer = ask(with.now);
  if (answer.status != 200 && !as.anonymous()) {
    const refusal found = read_refusal(answer, with.region);
    if (refuses_clock(found, with.now)) {
      with.clock(*found.server_time);
      answer = ask(*found.server_time);
    }
  }
  if (answer.status != 200)
    throw error_of(read_refusal(answer, with.region), "give the credentials of a role");
  return read_sts_credentials(answer.body, text({action, "Result"}).c_str());
}

/// Reads the token again each time: whoever made it renews it.
[[nodiscard]] inline s3_credentials web_identity(const credential_surroundings& with,
                                                 const role_request& role, const std::string& token_file,
                                                 std::string_view named_by) {
  const std::vector<name_value> token{{"WebIdentityToken", token_in(token_file, named_by)}};
  return ask_sts(with, "AssumeRoleWithWebIdentity", role, token, {});
}

/// AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN.
[[nodiscard]] inline std::optional<s3_credentials> web_identity(const credential_surroundings& with) {
  const auto file_name = with.environment.value("AWS_WEB_IDENTITY_TOKEN_FILE");
  const auto arn = with.environment.value("AWS_ROLE_ARN");
  if (!file_name) return std::nullopt;
  if (!arn) throw error(errc::argument, "AWS_WEB_IDENTITY_TOKEN_FILE is set, but AWS_ROLE_ARN is not");
  const std::string session(with.environment.value("AWS_ROLE_SESSION_NAME").value_or(""));
  return web_identity(with, {std::string(*arn), session, {}}, std::string(*file_name),
                      "AWS_WEB_IDENTITY_TOKEN_FILE");
}

}  // namespace penstock::inline v0_1::detail::s3

// ---- penstock/storage/s3/credential_chain.hpp

namespace penstock::inline v0_1 {

/// As whom the store is asked. Left alone, credentials are looked for where the tools of AWS do; the first
/// place that has some decides:
///
/// 1. AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN
/// 2. the web identity of AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN
/// 3. the profile AWS_PROFILE, or `default`, of ~/.aws/credentials and ~/.aws/config: keys, or a role with
/// its source 4. the service of the container: AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI
/// 5. the instance metadata of EC2, version 2
///
///     const s3_identity anybody{.credentials = s3_credentials()};
///     const s3_identity team{.profile = "training"};
struct s3_identity {
  /// These and no others; `s3_credentials()` for requests that are not signed.
  std::optional<s3_credentials> credentials = std::nullopt;
  /// The profile instead of AWS_PROFILE's; then 1 and 2 are left out.
  std::string profile = {};
};

namespace detail::s3 {

/// Looks for credentials. Copies share nothing; each call reads the files and asks the services again.
class credential_chain {
 public:
  credential_chain(s3_identity identity, s3_environment environment, http_call http,
                   clock_listener clock = {})
      : identity_(std::move(identity)), environment_(std::move(environment)), http_(http), clock_(clock) {}

  /// Throws errc::argument, with the places that were looked at, if there are none; errc::argument for what
  /// is wrong in a file or a variable; errc::io, marked recurring where asking again would not help, for a
  /// service.
  [[nodiscard]] s3_credentials find(wall_time now) {
    if (identity_.credentials)
      return *identity_.credentials == s3_credentials() ? s3_credentials()
                                                        : checked(*identity_.credentials, "what was given");
    if (identity_.profile.empty())
      if (auto found = of_environment()) return std::move(*found);
    const profile_files files(environment_);
    const std::string profile =
        identity_.profile.empty() ? profile_name(environment_, files) : identity_.profile;
    if (!identity_.profile.empty() && !files.has(profile))
      throw error(errc::argument, {"the profile '", profile, "' is not in ", files.paths()});
    std::string region = resolved({}, environment_, files, profile).region;
    if (region == "auto") region = "us-east-1";  // STS has no other stores
    const credential_surroundings with{environment_, files, http_, now, region, clock_, &metadata_answers_};
    if (identity_.profile.empty())
      if (auto found = web_identity(with)) return std::move(*found);
    std::vector<std::string> passed;
    if (auto found = of_profile(with, profile, passed)) return std::move(*found);
    if (auto found = of_container(with)) return std::move(*found);
    if (auto found = of_instance(with)) return std::move(*found);
    throw error(errc::argument,
                {"there are no credentials for S3: AWS_ACCESS_KEY_ID is not set, the profile '", profile,
                 "' of ", files.paths(),
                 " has none, and there is no web identity, no service of a container and no instance "
                 "metadata; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or read without signing with "
                 ".credentials = s3_credentials()"});
  }

 private:
  [[nodiscard]] std::optional<s3_credentials> of_environment() const {
    const auto id = environment_.value("AWS_ACCESS_KEY_ID"),
               secret = environment_.value("AWS_SECRET_ACCESS_KEY");
    if (!id && !secret) return std::nullopt;
    if (!id || !secret)
      throw error(errc::argument, {id ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY", " is set, but ",
                                   id ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID", " is not"});
    return checked({std::string(*id), std::string(*secret),
                    std::string(environment_.value("AWS_SESSION_TOKEN").value_or(""))},
                   "the environment");
  }

  [[nodiscard]] static std::optional<s3_credentials> keys_of(const credential_surroundings& with,
                                                             const std::string& profile) {
    const auto id = with.files.value(profile, "aws_access_key_id");
    const auto secret = with.files.value(profile, "aws_secret_access_key");
    if (!id && !secret) return std::nullopt;
    return checked({std::string(id.value_or("")), std::string(secret.value_or("")),
                    std::string(with.files.value(profile, "aws_session_token").value_or(""))},
                   text({"the profile '", profile, "'"}));
  }
  /// `passed` holds the profiles on the way here: their roles take each other as sources.
  [[nodiscard]] std::optional<s3_credentials> of_profile(const credential_surroundings& with,
                                                         const std::string& profile,
                                                         std::vector<std::string>& passed) const {
    const bool again = std::find(passed.begin(), passed.end(), profile) != passed.end();
    const auto arn = with.files.value(profile, "role_arn");
    if (arn && !again) {
      passed.push_back(profile);
      return of_role(with, profile, std::string(*arn), passed);
    }
    if (auto found = keys_of(with, profile)) return found;
    if (again)
      throw error(errc::argument, {"the role of the profile '", profile, "' has itself as its source"});
    for (const char* const name :
         {"credential_process", "sso_session", "sso_start_url", "sso_account_id", "login_session"})
      if (with.files.value(profile, name))
        throw error(errc::argument,
                    {"the profile '", profile, "' has its credentials by ", name,
                     ", which is not supported: export them with `aws configure export-credentials "
                     "--format env`, or name another profile"});
    return std::nullopt;
  }
  [[nodiscard]] s3_credentials of_role(const credential_surroundings& with, const std::string& profile,
                                       std::string arn, std::vector<std::string>& passed) const {
    const auto value = [&](std::string_view name) {
      return std::string(with.files.value(profile, name).value_or(""));
    };
    const auto fail = [&](std::initializer_list<piece> why) {
      std::string line = text({"the role of the profile '", profile, "' "});
      append(line, why);
      throw error(errc::argument, line);
    };
    role_request role{std::move(arn), value("role_session_name"), value("external_id")};
    if (const std::string token = value("web_identity_token_file"); !token.empty())
      return web_identity(with, role, token, text({"the profile '", profile, "'"}));
    if (!value("mfa_serial").empty()) fail({"has an mfa_serial, and nobody is here to type the code"});
    const std::string parent = value("source_profile"), place = value("credential_source");
    std::optional<s3_credentials> source;
    if (!parent.empty() && !place.empty()) {
      fail({"has a source_profile and a credential_source: only one of them can be"});
    } else if (!parent.empty()) {
      if (!with.files.has(parent))
        fail({"has the source_profile '", parent, "', which is not in ", with.files.paths()});
      source = of_profile(with, parent, passed);
    } else if (place == "Environment") {
      source = of_environment();
    } else if (place == "EcsContainer") {
      source = of_container(with);
    } else if (place == "Ec2InstanceMetadata") {
      source = of_instance(with);
    } else {
      fail(
          {"needs a source_profile, or a credential_source that is Environment, EcsContainer or "
           "Ec2InstanceMetadata"});
    }
    if (!source) fail({"finds no credentials at its source, '", parent.empty() ? place : parent, "'"});
    return ask_sts(with, "AssumeRole", role, {}, *source);
  }

  s3_identity identity_;
  s3_environment environment_;
  http_call http_;
  clock_listener clock_;
  bool metadata_answers_ = false;
};

}  // namespace detail::s3

}  // namespace penstock::inline v0_1

// ---- penstock/storage/s3/list_result.hpp

namespace penstock::inline v0_1::detail::s3 {

/// An object as a list has it. The ETag is as the store spells it, usually in quotes; empty if it has none.
struct listed_object {
  std::string key;
  std::uint64_t size = 0;
  std::string etag;
};

/// One page of ListObjectsV2.
struct list_page {
  std::vector<listed_object> objects;
  std::vector<std::string> prefixes;  // with a delimiter: what would be folders
  std::string next_token;             // empty on the last page
};

/// Reads the body of a page. Throws errc::io, not recurring, for one that is malformed: truncated, hostile, a
/// size that is none, names that are not encoded as the page says, or more to come without a token for it.
[[nodiscard]] inline list_page read_list_page(std::string_view body) {
  const xml_answer answer(body, "the list of objects");
  const pugi::xml_node root = answer.root("ListBucketResult");
  const std::string encoding = characters_of(root.child("EncodingType"));
  if (!encoding.empty() && encoding != "url") answer.fail({"encodes its names in a way that is not 'url'"});
  const auto name_in = [&](const pugi::xml_node& within, const char* name) {
    std::string raw = answer.required(within, name);
    if (encoding.empty()) return raw;
    auto decoded = form_decoded(raw);
    if (!decoded) answer.fail({"has a '%' without two digits in a <", name, ">"});
    return std::move(*decoded);
  };
  const auto size_in = [&](const pugi::xml_node& object) {
    const std::string digits = answer.required(object, "Size");
    std::uint64_t size = 0;
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
    if (problem != std::errc{} || end != digits.data() + digits.size() ||
        size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      answer.fail({"has a <Size> that is no number of bytes"});
    return size;
  };
  list_page page;
  for (const pugi::xml_node& one : root.children()) {
    const std::string_view element = one.name();
    if (element == "Contents") {
      page.objects.push_back({name_in(one, "Key"), size_in(one), characters_of(one.child("ETag"))});
      if (!fits_into_header(page.objects.back().etag)) answer.fail({"has control characters in an <ETag>"});
    } else if (element == "CommonPrefixes") {
      page.prefixes.push_back(name_in(one, "Prefix"));
    }
  }
  const std::string more = characters_of(root.child("IsTruncated"));
  if (more == "true") {
    page.next_token = characters_of(root.child("NextContinuationToken"));
    if (page.next_token.empty())
      answer.fail(
          {"says that there is more, and has no <NextContinuationToken>: does this store have "
           "ListObjectsV2?"});
  } else if (!more.empty() && more != "false") {
    answer.fail({"has an <IsTruncated> that is neither true nor false"});
  }
  return page;
}

/// Goes through the pages of a list: until `done`, sends `query` and gives the answer's body to `accept`.
class object_listing {
 public:
  /// Objects whose keys begin with `prefix`; those with `delimiter` after it become prefixes, unless empty.
  explicit object_listing(std::string prefix, std::string delimiter = {})
      : prefix_(std::move(prefix)), delimiter_(std::move(delimiter)) {}

  [[nodiscard]] bool done() const noexcept { return done_; }
  /// Of the request for the next page, which goes to the bucket.
  [[nodiscard]] std::vector<name_value> query() const {
    std::vector<name_value> items{{"list-type", "2"}, {"encoding-type", "url"}, {"prefix", prefix_}};
    if (!delimiter_.empty()) items.push_back({"delimiter", delimiter_});
    if (!token_.empty()) items.push_back({"continuation-token", token_});
    return items;
  }
  /// The page with this body. Throws what `read_list_page` does, and errc::io for a page that is not the one
  /// asked for: names without the prefix; or for a list that would never end: the token of the page before,
  /// or more than 1000 pages in a row without a name.
  [[nodiscard]] list_page accept(std::string_view body) {
    list_page page = read_list_page(body);
    for (const listed_object& one : page.objects) check(one.key);
    for (const std::string& one : page.prefixes) check(one);
    if (!page.next_token.empty() && page.next_token == token_)
      throw error(errc::io,
                  "the list of objects does not end: the store gives the same continuation token again");
    empty_pages_ = page.objects.empty() && page.prefixes.empty() ? empty_pages_ + 1 : 0;
    if (empty_pages_ > max_empty_pages)
      throw error(errc::io, {"the list of objects does not end: ", empty_pages_,
                             " pages in a row have no name; ask for a longer prefix"})
          .recurring();
    token_ = page.next_token;
    done_ = token_.empty();
    return page;
  }

 private:
  void check(std::string_view name) const {
    if (!name.starts_with(prefix_))
      throw error(errc::io, {"the list of objects has a name that does not begin with '", prefix_,
                             "', which was asked for"});
  }

  static constexpr std::size_t max_empty_pages = 1000;  // of objects that were removed, perhaps

  std::string prefix_, delimiter_, token_;
  std::size_t empty_pages_ = 0;  // in a row
  bool done_ = false;
};

}  // namespace penstock::inline v0_1::detail::s3

// ---- penstock/storage/s3/multipart.hpp

namespace penstock::inline v0_1::detail::s3 {

/// The upload's id, from the body of the answer to `POST ?uploads`.
[[nodiscard]] inline std::string read_upload_id(std::string_view body) {
  const xml_answer answer(body, "the answer to the start of an upload");
  return answer.required(answer.root("InitiateMultipartUploadResult"), "UploadId");
}

inline void append_xml(std::string& line, std::string_view chars) {
  for (const char c : chars) {
    if (c == '&') {
      line += "&amp;";
    } else if (c == '<') {
      line += "&lt;";
    } else if (c == '>') {
      line += "&gt;";
    } else if (c == '"') {
      line += "&quot;";
    } else {
      line += c;
    }
  }
}

/// The body of the request that completes an upload, from the ETags of its parts 1 to n, in order, as the
/// answers to them had them. Throws errc::argument for none, for more than 10,000, and for an empty one.
[[nodiscard]] inline std::string completion_of(std::span<const std::string> etags) {
  if (etags.empty() || etags.size() > 10'000)
    throw error(errc::argument, {"an upload has 1 to 10000 parts, not ", etags.size()});
  std::string body = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (std::size_t i = 0; i < etags.size(); ++i) {
    if (etags[i].empty() || !fits_into_header(etags[i]))
      throw error(errc::argument, {"part ", i + 1, " of the upload has no ETag"});
    append(body, {"<Part><PartNumber>", i + 1, "</PartNumber><ETag>"});
    append_xml(body, etags[i]);
    body += "</ETag></Part>";
  }
  return body + "</CompleteMultipartUpload>";
}

/// The ETag of an object of these parts, as S3 makes it: the MD5 of the parts' MD5s, and their number. Empty
/// if the parts' ETags are no MD5s.
[[nodiscard]] inline std::string tag_of_parts(std::span<const std::string> etags) {
  std::string sums;
  for (std::string_view tag : etags) {
    if (tag.size() > 1 && tag.starts_with('"') && tag.ends_with('"')) tag = tag.substr(1, tag.size() - 2);
    if (tag.size() != 32) return {};
    for (std::size_t i = 0; i < tag.size(); i += 2) {
      const int high = hex_value(tag[i]), low = hex_value(tag[i + 1]);
      if (high < 0 || low < 0) return {};
      sums += static_cast<char>(high * 16 + low);
    }
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> out{};
  unsigned int size = 0;
  if (EVP_Digest(sums.data(), sums.size(), out.data(), &size, EVP_md5(), nullptr) != 1) return {};
  std::string tag = "\"";
  append_hex(tag, std::span(out).first(size));
  return tag + text({"-", etags.size(), "\""});
}

/// The object's ETag, from the answer to that request. A status of 200 may come before the store knows how it
/// ends: then the body is spaces and an error, which is thrown like one with a status of its own.
[[nodiscard]] inline std::string read_completion(const http_answer& answer) {
  constexpr std::string_view what = "complete an upload";
  if (answer.status != 200) throw error_of(read_refusal(answer), what);
  const xml_answer document(answer.body, "the answer to the end of an upload");
  if (std::string_view(document.root().name()) == "Error") {
    refusal found = read_refusal(answer);
    if (!remedy_of(found.code)) found.remedy = s3_remedy::retry;  // the status says nothing
    throw error_of(found, what);
  }
  return document.required(document.root("CompleteMultipartUploadResult"), "ETag");
}

}  // namespace penstock::inline v0_1::detail::s3

// ---- penstock/storage/s3/requests/checksum.hpp

namespace penstock::inline v0_1::detail::s3 {

/// CRCs whose bits are reflected, with all ones at both ends, eight bytes at a time.
/// Source: Kounavis and Berry, "A Systematic Approach to Building High Performance, Software-based, CRC
/// Generators" (2005).
template <class Word, Word Polynomial>
class reflected_crc {
 public:
  [[nodiscard]] static Word of(bytes_view bytes) {
    static const tables all = made();
    Word crc = static_cast<Word>(~Word{0});
    const std::byte* at = bytes.data();
    std::size_t left = bytes.size();
    for (; left >= 8; at += 8, left -= 8) {
      std::uint64_t eight = 0;
      std::memcpy(&eight, at, 8);
      if constexpr (std::endian::native == std::endian::big) eight = __builtin_bswap64(eight);
      eight ^= crc;
      crc = 0;
      for (std::size_t i = 0; i < 8; ++i) crc ^= all[7 - i][(eight >> (8 * i)) & 0xff];
    }
    for (; left != 0; ++at, --left)
      crc = static_cast<Word>((crc >> 8) ^ all[0][(crc ^ std::to_integer<Word>(*at)) & 0xff]);
    return static_cast<Word>(~crc);
  }

 private:
  using tables = std::array<std::array<Word, 256>, 8>;
  [[nodiscard]] static tables made() {
    tables all{};
    for (std::size_t i = 0; i < 256; ++i) {
      Word crc = static_cast<Word>(i);
      for (int bit = 0; bit < 8; ++bit)
        crc = static_cast<Word>((crc >> 1) ^ ((crc & 1) != 0 ? Polynomial : 0));
      all[0][i] = crc;
    }
    for (std::size_t i = 0; i < 256; ++i)
      for (std::size_t n = 1; n < 8; ++n)
        all[n][i] = static_cast<Word>((all[n - 1][i] >> 8) ^ all[0][all[n - 1][i] & 0xff]);
    return all;
  }
};
using crc32 = reflected_crc<std::uint32_t, 0xEDB88320u>;
using crc32c = reflected_crc<std::uint32_t, 0x82F63B78u>;
using crc64nvme = reflected_crc<std::uint64_t, 0x9A6C9329AC4BC9B5u>;

[[nodiscard]] inline std::string base64_of(std::span<const unsigned char> bytes) {
  std::string line((bytes.size() + 2) / 3 * 4 + 1, '\0');  // EVP_EncodeBlock ends with a zero
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(line.data()), bytes.data(),
                                   static_cast<int>(bytes.size()));
  line.resize(static_cast<std::size_t>(size));
  return line;
}
/// A CRC as headers have it: base64 of its bytes, the highest first.
template <class Word>
[[nodiscard]] std::string base64_of_crc(Word crc) {
  std::array<unsigned char, sizeof(Word)> bytes{};
  for (std::size_t i = 0; i < sizeof(Word); ++i)
    bytes[i] = static_cast<unsigned char>(crc >> (8 * (sizeof(Word) - 1 - i)));
  return base64_of(bytes);
}

/// The header Content-MD5 of a body, by which every store notices one that changed on its way; empty where
/// OpenSSL has no MD5, as in FIPS mode.
[[nodiscard]] inline std::string md5_of(std::string_view body) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> out{};
  unsigned int size = 0;
  if (EVP_Digest(body.data(), body.size(), out.data(), &size, EVP_md5(), nullptr) != 1) return {};
  return base64_of({out.data(), size});
}

/// A checksum of a whole object that a store gave, and what it must be.
struct known_checksum {
  std::string_view name;  // as S3 calls it
  std::string_view value;
};
/// The best one among an answer's headers. A checksum of the parts' checksums, which S3 marks as COMPOSITE or
/// by "-n" at its end, tells nothing of bytes in one piece; SHA-1 and MD5 are left out too.
template <class Header>
[[nodiscard]] std::optional<known_checksum> checksum_of(Header&& header) {
  const std::string_view type = header("x-amz-checksum-type");
  if (type.empty() || type == "FULL_OBJECT") {
    for (const std::string_view name : {"crc32c", "crc32", "crc64nvme", "sha256"}) {
      const std::string_view value = trimmed(header("x-amz-checksum-" + std::string(name)));
      if (!value.empty() && value.find('-') == std::string_view::npos) return known_checksum{name, value};
    }
  }
  const std::string_view google = header("x-goog-hash");
  constexpr std::string_view wanted = "crc32c=";
  if (const std::size_t at = google.find(wanted); at != std::string_view::npos) {
    const std::string_view rest = google.substr(at + wanted.size());
    return known_checksum{"crc32c", trimmed(rest.substr(0, rest.find(',')))};
  }
  return std::nullopt;
}
/// What that checksum is of these bytes.
[[nodiscard]] inline std::string checksum_of(std::string_view name, bytes_view bytes) {
  if (name == "crc32c") return base64_of_crc(crc32c::of(bytes));
  if (name == "crc32") return base64_of_crc(crc32::of(bytes));
  if (name == "crc64nvme") return base64_of_crc(crc64nvme::of(bytes));
  return base64_of(sha256({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
}

}  // namespace penstock::inline v0_1::detail::s3

// ---- penstock/storage/s3/requests/web_http_call.hpp

namespace penstock::inline v0_1::detail::s3 {

/// An answer of the client as those who read credentials and errors take it.
[[nodiscard]] inline http_answer answer_of(const web::answer& reply) {
  http_answer made;
  made.status = static_cast<int>(reply.status);
  for (const auto& one : reply.fields)
    made.headers.push_back({std::string(one.name_string()), std::string(one.value())});
  made.body = reply.body;
  return made;
}

/// Sends the requests for credentials: each with a client of its own, since they are rare and may be for
/// different hosts. Services without encryption are near, and are never asked through a proxy.
///
/// Threads: any number may send, and one may cancel; requests that were sent must have ended before it is
/// destroyed.
class web_http_call {
 public:
  explicit web_http_call(http_options options) : options_(std::move(options)) {}
  web_http_call(const web_http_call&) = delete;
  web_http_call& operator=(const web_http_call&) = delete;

  [[nodiscard]] http_call call() noexcept {
    return {this, [](void* self, const http_request& request) {
              return static_cast<web_http_call*>(self)->send(request);
            }};
  }
  /// Ends the requests in progress with errc::stopped.
  void cancel() noexcept {
    const std::scoped_lock lock(mutex_);
    for (web::client* const one : open_) one->refuse();
  }
  /// Does so, and sends none any more.
  void refuse() noexcept {
    {
      const std::scoped_lock lock(mutex_);
      refuses_ = true;
    }
    cancel();
  }

 private:
  [[nodiscard]] static web::verb verb_of(const std::string& method) {
    const auto found = boost::beast::http::string_to_verb({method.data(), method.size()});
    if (found == web::verb::unknown) throw error(errc::argument, {"HTTP has no method '", method, "'"});
    return found;
  }
  /// The client is known to `cancel` for as long as it lives.
  struct listed {
    listed(web_http_call& owner, const http_options& options) : all(owner), client(options) {
      const std::scoped_lock lock(all.mutex_);
      if (all.refuses_) throw error(errc::stopped, "the request for credentials was cancelled");
      all.open_.push_back(&client);
    }
    listed(const listed&) = delete;
    listed& operator=(const listed&) = delete;
    ~listed() {
      const std::scoped_lock lock(all.mutex_);
      std::erase(all.open_, &client);
    }
    web_http_call& all;
    web::client client;
  };
  struct waiting {
    std::mutex mutex;
    std::condition_variable changed;
    bool over = false;
    std::exception_ptr failed;
  };

  [[nodiscard]] http_answer send(const http_request& request) {
    const auto end = std::chrono::steady_clock::now() + request.deadline;
    http_options options = options_;
    options.connections = 1;
    options.proxies = options.proxies && request.to.scheme == "https";
    const auto maximum = std::max(request.deadline, std::chrono::milliseconds(1));
    for (auto* const time : {&options.connect_time, &options.first_byte_time, &options.progress_time})
      *time = std::min(*time, maximum);
    web::call what;
    what.method = verb_of(request.method);
    what.where = request.to;
    for (const name_value& one : request.headers) what.headers.emplace_back(one.name, one.value);
    what.body = request.body;
    what.max_body = request.max_body_size;
    what.follow_redirects = false;
    waiting state;
    what.self = &state;
    what.done = [](void* self, web::call&, std::exception_ptr failed) noexcept {
      auto& waits = *static_cast<waiting*>(self);
      const std::scoped_lock lock(waits.mutex);
      waits.failed = std::move(failed);
      waits.over = true;
      waits.changed.notify_one();
    };
    listed mine(*this, options);
    web::call* const only = &what;
    mine.client.submit({&only, 1});
    std::unique_lock lock(state.mutex);
    const bool in_time = state.changed.wait_until(lock, end, [&] { return state.over; });
    if (!in_time) {
      lock.unlock();
      mine.client.cancel();
      lock.lock();
      state.changed.wait(lock, [&] { return state.over; });
      if (state.failed)
        throw what.failure({"no answer within ", request.deadline.count(), " ms"}).after_time_out();
    }
    if (state.failed) std::rethrow_exception(state.failed);
    if (what.reply.cut) throw what.failure({"the answer has more than ", request.max_body_size, " bytes"});
    return answer_of(what.reply);
  }

  http_options options_;
  std::mutex mutex_;
  std::vector<web::client*> open_;
  bool refuses_ = false;
};

}  // namespace penstock::inline v0_1::detail::s3

// ---- penstock/storage/s3/requests/store_call.hpp

namespace penstock::inline v0_1::detail::s3 {

/// A request to a store, and where its answer goes. The caller fills the first part and keeps it until
/// `ended`.
struct store_call : web::call {
  /// Where it goes; no key: to the bucket. They outlive the call, as does `name`.
  std::string_view bucket, key;
  std::vector<name_value> query;  // not encoded
  std::vector<name_value> more;   // headers that are signed, in lower case
  /// What is to happen, for errors.
  std::string_view doing = "read an object";
  /// Called once, from any thread, under the rules of `web::call::done`.
  void* owner = nullptr;
  void (*ended)(void* owner, store_call& what, std::exception_ptr failed) noexcept = nullptr;

  // The store's.
  std::shared_ptr<const s3_credentials> as;
  std::shared_ptr<const endpoint> at;
  std::string payload;  // the hash of the body
  std::uint64_t round = 0;
  bool renewed = false, resynced = false, moved = false;  // what was done about an answer already

  [[nodiscard]] bool succeeded() const noexcept { return reply.status / 100 == 2; }
  [[nodiscard]] refusal refused() const {
    return read_refusal(answer_of(reply), at ? std::string_view(at->region()) : std::string_view());
  }
  /// The error of an answer that is no success.
  [[nodiscard]] error failure_of_answer() const { return with_facts(error_of(refused(), doing)); }
};

/// An ETag in quotes, without W/: some stores leave quotes out of lists. Empty for one with nothing in its
/// quotes, which SeaweedFS gives an object of another store until it has its bytes.
[[nodiscard]] inline std::string tag_of(std::string_view tag) {
  if (tag.starts_with("W/")) tag.remove_prefix(2);
  if (tag == "\"\"") return {};
  const bool quoted = tag.size() > 1 && tag.starts_with('"') && tag.ends_with('"');
  return quoted || tag.empty() ? std::string(tag) : text({"\"", tag, "\""});
}

/// The query of a URL.
[[nodiscard]] inline std::string query_of(const std::vector<name_value>& items) {
  std::string line;
  for (const name_value& one : items) {
    if (!line.empty()) line += '&';
    append_encoded(line, one.name);
    line += '=';
    append_encoded(line, one.value);
  }
  return line;
}

}  // namespace penstock::inline v0_1::detail::s3

// ---- penstock/storage/s3_options.hpp

namespace penstock::inline v0_1 {

/// Options of `s3` and `s3_writer`. None of them changes the bytes.
///
///     const s3_options google{.place = {.region = "auto", .endpoint = "https://storage.googleapis.com"}};
///     const s3_options open_data{.place = {.region = "us-west-2"},
///                                .identity = {.credentials = s3_credentials()}};
///     const s3_options far{.connection = {.connections = 64}};
struct s3_options {
  /// Where the store is; what is left empty comes from the environment and the profile.
  s3_place place = {};
  /// As whom it is asked; left alone, credentials are looked for where the tools of AWS do.
  s3_identity identity = {};
  /// Whether you pay for requests to a bucket whose owner wants that. Without it, such a bucket refuses.
  bool requester_pays = false;
  /// Whether objects that are read whole are compared with the checksums that the store keeps of them.
  bool verify_checksums = true;
  /// Connections, time-outs, certificates, proxies; retries, limit and second requests.
  http_options connection = {};
  /// These variables instead of the process's, for a program that has several stores.
  std::optional<s3_environment> environment = std::nullopt;
};

}  // namespace penstock::inline v0_1

// ---- penstock/storage/s3/requests/store.hpp

namespace penstock::inline v0_1::detail::s3 {

/// Performs requests to a store, signed. What an answer that is an error asks for is done, and the request is
/// sent once more: other credentials, the right time, another region. Where credentials must be found first,
/// a thread does that; callers of `begin` wait for nothing.
///
/// Threads: any number. Destruction ends all requests and waits for both threads.
class store {
 public:
  explicit store(const s3_options& options, wall_clock clock = {})
      : environment_(options.environment ? *options.environment : s3_environment::of_process()),
        clock_(clock),
        credentials_(options.connection),
        credential_cache_(
            credential_chain(options.identity, environment_, credentials_.call(), {this, set_clock}),
            corrected(), std::random_device{}()),
        client_(std::in_place, options.connection) {
    const profile_files files(environment_);
    const std::string profile =
        options.identity.profile.empty() ? profile_name(environment_, files) : options.identity.profile;
    if (!files.has(profile) && !options.identity.profile.empty())
      throw error(errc::argument, {"the profile '", profile, "' is not in ", files.paths()});
    place_ = resolved(options.place, environment_, files, profile);
    first_ = std::make_shared<const endpoint>(place_);
    if (options.requester_pays) always_.push_back({"x-amz-request-payer", "requester"});
  }
  store(const store&) = delete;
  store& operator=(const store&) = delete;
  ~store() {
    {
      const std::scoped_lock lock(mutex_);
      ends_ = true;
    }
    refuse();
    wake_.notify_one();
    if (finder_.joinable()) finder_.join();
    client_.reset();
  }

  /// Begins calls, in their order; each ends by its `ended`.
  void begin(std::span<store_call* const> calls) noexcept {
    {
      const std::scoped_lock lock(mutex_);
      for (store_call* const one : calls) one->round = round_;
    }
    go(calls);
  }
  /// Performs one call and waits for its end; throws if there is no answer. Not from the client's thread.
  void perform(store_call& what) {
    struct waiting {
      std::mutex mutex;
      std::condition_variable changed;
      bool over = false;
      std::exception_ptr failed;
    } state;
    what.owner = &state;
    what.ended = [](void* self, store_call&, std::exception_ptr failed) noexcept {
      auto& waits = *static_cast<waiting*>(self);
      const std::scoped_lock lock(waits.mutex);
      waits.failed = std::move(failed);
      waits.over = true;
      waits.changed.notify_one();
    };
    store_call* const only = &what;
    begin({&only, 1});
    std::unique_lock lock(state.mutex);
    state.changed.wait(lock, [&] { return state.over; });
    if (state.failed) std::rethrow_exception(state.failed);
  }

  /// Ends all calls that have begun, with errc::stopped.
  void cancel() noexcept {
    std::vector<store_call*> waited;
    {
      const std::scoped_lock lock(mutex_);  // so that nothing of the next round is cancelled, too
      ++round_;
      waited.swap(waiting_);
      client_->cancel();
      credentials_.cancel();
    }
    for (store_call* const one : waited) stop(*one);
  }
  /// Ends the calls with that tag. One whose credentials have just been found may run to its end.
  void abandon(std::uint64_t tag) noexcept {
    std::vector<store_call*> waited;
    try {
      const std::scoped_lock lock(mutex_);
      waited.reserve(waiting_.size());
      std::erase_if(waiting_, [&](store_call* one) {
        if (one->tag != tag) return false;
        waited.push_back(one);
        return true;
      });
    } catch (...) {  // no memory: they run to their ends
    }
    client_->abandon(tag);
    for (store_call* const one : waited) stop(*one);
  }
  /// As `cancel`, and takes no more.
  void refuse() noexcept {
    client_->refuse();
    credentials_.refuse();
    cancel();
  }

  [[nodiscard]] const web::counts& counted() const noexcept { return client_->counted(); }
  /// Answers that asked for fewer requests, and had another status than 429 and 503.
  [[nodiscard]] std::uint64_t other_slow_downs() const noexcept { return slow_downs_.load(); }

 private:
  // ---- Sending

  void go(std::span<store_call* const> calls) noexcept {
    std::exception_ptr failed;
    try {
      if (const auto as = credential_cache_.ready()) return send(calls, as);
      const std::scoped_lock lock(mutex_);
      waiting_.reserve(waiting_.size() + calls.size());
      if (!finder_.joinable() && !ends_) finder_ = std::thread([this]() noexcept { find_credentials(); });
      if (!ends_) {
        waiting_.insert(waiting_.end(), calls.begin(), calls.end());
        wake_.notify_one();
        return;
      }
    } catch (...) {
      failed = std::current_exception();
    }
    if (failed) return end_all(calls, std::move(failed));
    for (store_call* const one : calls) stop(*one);
  }
  /// Ends calls with a failure, outside of its handler: the last one takes it along, and frees it.
  template <class Call>
  static void end_all(std::span<Call* const> calls, std::exception_ptr failed) noexcept {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      auto& one = static_cast<store_call&>(*calls[i]);
      one.ended(one.owner, one, i + 1 == calls.size() ? std::move(failed) : failed);
    }
  }
  void find_credentials() noexcept {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
      if (ends_) return;  // `cancel` has ended, or will end, those that wait
      const std::uint64_t round = round_;
      std::vector<store_call*> calls;
      lock.unlock();
      std::shared_ptr<const s3_credentials> as;
      std::optional<error> failure;
      try {
        as = credential_cache_.current();
      } catch (const error& e) {
        failure = e;
      } catch (const std::exception& e) {
        failure.emplace(errc::io, e.what());
      }
      lock.lock();
      // What was cancelled meanwhile is gone; what came then gets its own try.
      if (failure && round != round_) continue;
      calls.swap(waiting_);
      lock.unlock();
      if (as)
        send(calls, as);
      else
        for (store_call* const one : calls) fail(*one, *failure);
      lock.lock();
    }
  }
  /// Never keeps the lock while a listener is called.
  void send(std::span<store_call* const> calls, const std::shared_ptr<const s3_credentials>& as) noexcept {
    std::vector<web::call*> ready;
    std::vector<store_call*> stopped;
    std::exception_ptr failed;
    try {
      ready.reserve(calls.size());
      stopped.reserve(calls.size());
    } catch (...) {
      failed = std::current_exception();
    }
    if (failed) return end_all(calls, std::move(failed));
    for (store_call* const one : calls) {
      std::exception_ptr refused;
      try {
        prepare(*one, as);
        ready.push_back(one);
      } catch (const error& e) {
        fail(*one, e);
      } catch (...) {
        refused = std::current_exception();
      }
      if (refused) one->ended(one->owner, *one, std::move(refused));
    }
    try {
      const std::scoped_lock lock(mutex_);
      std::erase_if(ready, [&](web::call* one) {
        auto& what = static_cast<store_call&>(*one);
        if (what.round == round_ && !ends_) return false;
        stopped.push_back(&what);
        return true;
      });
      if (!ready.empty()) client_->submit(ready);
    } catch (...) {
      failed = std::current_exception();
    }
    if (failed) end_all(std::span<web::call* const>(ready), std::move(failed));
    for (store_call* const one : stopped) stop(*one);
  }
  void prepare(store_call& what, const std::shared_ptr<const s3_credentials>& as) {
    what.as = as;
    what.at = place_of(what.bucket);
    what.where =
        what.key.empty() ? what.at->of_bucket(what.bucket) : what.at->of_object(what.bucket, what.key);
    what.where.query = query_of(what.query);
    what.been.clear();
    what.replaced = false;
    what.stored_encoded = true;  // a property of the object: ranges are of the bytes that were put
    if (what.body.empty())
      what.payload = empty_payload;
    else if (what.at->is_encrypted())
      what.payload = unsigned_payload;
    else if (what.payload.empty() || what.payload == unsigned_payload)
      what.payload = payload_hash(what.body);
    if (!what.body.empty() && what.at->is_encrypted() && !header_of(what.more, "content-md5"))
      if (std::string sum = md5_of(what.body); !sum.empty())
        what.more.push_back({"content-md5", std::move(sum)});
    what.signer = this;
    what.sign = sign;
    what.self = this;
    what.done = answered;
  }

  // ---- From the client's thread

  static void sign(void* self, const web::call& base, std::string& lines) {
    auto& me = *static_cast<store*>(self);
    const auto& what = static_cast<const store_call&>(base);
    std::string region = what.at->region();
    if (!what.been.empty() && !me.may_sign_again(what, region)) return;
    me.headers_.assign(me.always_.begin(), me.always_.end());
    me.headers_.insert(me.headers_.end(), what.more.begin(), what.more.end());
    const std::string host = what.where.authority();
    const auto method = boost::beast::http::to_string(what.method);
    aws_signer& signer = me.signers_.try_emplace(region, region).first->second;
    signer.sign(
        {{method.data(), method.size()}, host, what.where.path, what.query, me.headers_, what.payload},
        *what.as, me.corrected()(), me.signed_);
    for (const auto* const list : {&me.headers_, &me.signed_.headers})
      for (const name_value& one : *list)
        lines.append(one.name).append(": ").append(one.value).append("\r\n");
  }
  /// After a redirect: whether to sign for the new URL. AIStore's are signed already, and a host that is not
  /// of the same store must not learn what it could use. AWS redirects to the region of a new bucket.
  [[nodiscard]] bool may_sign_again(const store_call& what, std::string& region) const {
    const url& from = what.been.front();
    if (what.where.query != from.query) return false;
    if (what.where.same_origin(from)) return true;
    const auto is_aws = [](const url& one) {
      return one.scheme == "https" &&
             (one.host.ends_with(".amazonaws.com") || one.host.ends_with(".amazonaws.com.cn"));
    };
    if (!is_aws(from) || !is_aws(what.where)) return false;
    region = region_of_host(what.where.host, region);
    return true;
  }
  /// `eu-west-1` of `bucket.s3.eu-west-1.amazonaws.com` and of `s3-eu-west-1.amazonaws.com`.
  [[nodiscard]] static std::string region_of_host(std::string_view host, std::string_view otherwise) {
    host = host.substr(0, host.rfind(".amazonaws.com"));
    const std::size_t dot = host.rfind('.');
    const std::string_view last = host.substr(dot == std::string_view::npos ? 0 : dot + 1);
    if (last.starts_with("s3-")) return std::string(last.substr(3));
    return std::string(last == "s3" ? otherwise : last);
  }

  static void answered(void* self, web::call& base, std::exception_ptr failed) noexcept {
    auto& me = *static_cast<store*>(self);
    auto& what = static_cast<store_call&>(base);
    bool again = false;
    if (!failed && !what.succeeded()) {
      try {
        again = me.remedied(what);
      } catch (...) {
        failed = std::current_exception();
      }
    }
    store_call* const only = &what;
    if (again) return me.go({&only, 1});
    what.ended(what.owner, what, std::move(failed));
  }
  /// Whether something was done about a refusal, so that it should be sent again.
  bool remedied(store_call& what) {
    const refusal found = what.refused();
    switch (found.remedy) {
      case s3_remedy::refresh_credentials:
        if (std::exchange(what.renewed, true) || what.as->anonymous()) return false;
        credential_cache_.expired(what.as);
        return true;
      case s3_remedy::resync_clock:
        if (std::exchange(what.resynced, true)) return false;
        set_clock(this, *found.server_time);
        return true;
      case s3_remedy::other_region:
        if (std::exchange(what.moved, true)) return false;
        move(std::string(what.bucket), found.region);
        return true;
      case s3_remedy::slow_down:
        if (found.status != 429 && found.status != 503) slow_downs_.fetch_add(1);
        return false;
      case s3_remedy::retry:
      case s3_remedy::none:
        break;
    }
    return false;
  }

  // ---- What was learnt

  [[nodiscard]] std::shared_ptr<const endpoint> place_of(std::string_view bucket) {
    const std::scoped_lock lock(mutex_);
    const auto found = moved_.find(bucket);
    return found == moved_.end() ? first_ : found->second;
  }
  void move(std::string bucket, const std::string& region) {
    s3_place there = place_;
    there.region = region;
    auto made = std::make_shared<const endpoint>(there);
    const std::scoped_lock lock(mutex_);
    moved_.insert_or_assign(std::move(bucket), std::move(made));
  }
  /// The clock of the store, as far as it has told.
  [[nodiscard]] wall_clock corrected() noexcept {
    return {this, [](void* self) {
              auto& me = *static_cast<store*>(self);
              return me.clock_() + std::chrono::seconds(me.ahead_.load());
            }};
  }

  static void set_clock(void* self, wall_time server) {
    auto& me = *static_cast<store*>(self);
    me.ahead_.store((server - me.clock_()).count());
  }

  // ---- Ends

  static void fail(store_call& what, const error& why) noexcept {
    std::exception_ptr failed;
    try {
      failed = std::make_exception_ptr(what.with_facts(own_copy(why)));
    } catch (...) {
      failed = std::current_exception();
    }
    what.ended(what.owner, what, std::move(failed));
  }
  static void stop(store_call& what) noexcept { what.ended(what.owner, what, web::cancelled(what)); }

  s3_environment environment_;
  wall_clock clock_;
  std::atomic<std::int64_t> ahead_{0};  // seconds that the store's clock is ahead of ours
  std::atomic<std::uint64_t> slow_downs_{0};
  s3_place place_;
  std::shared_ptr<const endpoint> first_;
  std::vector<name_value> always_;
  web_http_call credentials_;
  credential_cache<credential_chain> credential_cache_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::map<std::string, std::shared_ptr<const endpoint>, std::less<>> moved_;  // buckets
  std::vector<store_call*> waiting_;                                           // for credentials
  std::uint64_t round_ = 0;                                                    // how often it was cancelled
  bool ends_ = false;
  std::thread finder_;

  // The client's thread's.
  std::map<std::string, aws_signer, std::less<>> signers_;  // by region
  std::vector<name_value> headers_;
  signed_request signed_;

  std::optional<web::client> client_;
};

}  // namespace penstock::inline v0_1::detail::s3

// ---- penstock/storage/s3/requests/object_list.hpp

namespace penstock::inline v0_1::detail::s3 {

/// Objects by their names, `s3://bucket/key`.
struct object_names {
  std::vector<std::string> names;
  std::string pattern;

  [[nodiscard]] object_name operator[](std::size_t at) const {
    const std::string_view name = std::string_view(names[at]).substr(5);
    const std::size_t slash = name.find('/');
    return {name.substr(0, slash), name.substr(slash + 1)};
  }
};

/// What all keys begin with, up to a whole character.
[[nodiscard]] inline std::string common_prefix(std::span<const std::string_view> keys) {
  std::string_view common = keys.empty() ? std::string_view() : keys.front();
  for (const std::string_view one : keys) {
    std::size_t same = 0;
    while (same < common.size() && same < one.size() && common[same] == one[same]) ++same;
    common = common.substr(0, same);
  }
  // The bytes of a character in UTF-8 after its first are 10xxxxxx; its first says how many.
  std::size_t end = common.size(), after = 0;
  while (end != 0 && after < 4 && (static_cast<unsigned char>(common[end - 1]) & 0xC0u) == 0x80u)
    --end, ++after;
  const unsigned first = end == 0 ? 0u : static_cast<unsigned char>(common[end - 1]);
  const std::size_t wanted = first >= 0xF0u ? 3 : first >= 0xE0u ? 2 : first >= 0xC0u ? 1 : 0;
  return std::string(wanted > after ? common.substr(0, end - 1) : common);
}

/// The objects of a bucket whose keys begin with a prefix, page by page. A page that failed can be asked for
/// again.
class bucket_list {
 public:
  bucket_list(std::string_view bucket, std::string prefix)
      : bucket_(bucket), name_(text({"s3://", bucket, "/", prefix})), listing_(std::move(prefix)) {}

  [[nodiscard]] bool done() const noexcept { return listing_.done(); }
  [[nodiscard]] list_page next(store& with) {
    store_call call;
    call.bucket = bucket_;
    call.name = name_;
    call.doing = "list objects";
    call.query = listing_.query();
    call.max_body = std::size_t{8} << 20;
    with.perform(call);
    if (!call.succeeded()) throw call.failure_of_answer();
    if (call.reply.cut) throw call.failure({"a page of the list of objects has more than 8 MiB"}).recurring();
    try {
      return listing_.accept(call.reply.body);
    } catch (error& e) {
      e.in_file(name_);
      throw;
    }
  }

 private:
  std::string bucket_, name_;
  object_listing listing_;
};

/// The names of the objects that begin so; see `s3::list`.
[[nodiscard]] inline std::vector<std::string> names_in(store& with, std::string_view text_of_prefix,
                                                       const retry_policy& policy) {
  std::string_view rest = text_of_prefix;
  if (rest.starts_with("s3://")) rest.remove_prefix(5);
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::string_view bucket = rest.substr(0, slash);
  const std::string prefix(rest.substr(std::min(slash + 1, rest.size())));
  if (bucket.empty() || bucket.find_first_of("@:?") != std::string_view::npos)
    throw error(errc::argument, "what is listed is a bucket and perhaps a prefix: write s3://bucket/prefix");
  std::vector<std::string> names;
  retrier retries(policy);
  for (bucket_list list(bucket, prefix); !list.done();) {
    const list_page page = retries.insist([&] { return list.next(with); });
    for (const listed_object& one : page.objects) {
      if (one.size == 0 && one.key.ends_with('/')) continue;
      const std::string_view last = std::string_view(one.key).substr(one.key.rfind('/') + 1);
      if (last.find(".penstock-") == std::string_view::npos)
        names.push_back(text({"s3://", bucket, "/", one.key}));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace penstock::inline v0_1::detail::s3

// ---- penstock/storage/s3/requests/bucket_search.hpp

namespace penstock::inline v0_1::detail::s3 {

/// Looks for many objects of a bucket at once, by listing what their keys have in common: until all are
/// found, the list ends, or so many others have gone by that it is better to ask for each.
class bucket_search {
 public:
  /// Keys are those of `names`, which outlives this.
  bucket_search(const object_names& names, std::string_view bucket, const std::vector<object_id>& ids)
      : maximum_(max_listed(ids.size())), pages_(bucket, common_prefix(keys_of(names, ids))) {
    for (const object_id id : ids) open_.emplace(names[id].key, id);
  }

  /// The most objects that are listed while that many are looked for.
  [[nodiscard]] static std::size_t max_listed(std::size_t wanted) noexcept { return 10'000 + 10 * wanted; }

  [[nodiscard]] bool done() const noexcept { return open_.empty() || pages_.done() || seen_ >= maximum_; }
  /// Asks for the next page. One that failed is asked for again.
  [[nodiscard]] list_page next(store& with) { return pages_.next(with); }
  /// Calls `found(id, entry)` for each wanted object of a page.
  template <class Found>
  void take(const list_page& page, Found&& found) {
    for (const listed_object& one : page.objects) {
      const auto [begin, end] = open_.equal_range(one.key);
      for (auto at = begin; at != end; ++at) found(at->second, one);
      open_.erase(begin, end);
    }
    seen_ += page.objects.size();
  }
  /// The objects that do not exist: a list that ended does not have them. Stores that put folders together
  /// list keys with empty ones under other names.
  [[nodiscard]] std::vector<object_id> missing() const {
    std::vector<object_id> all;
    if (!pages_.done()) return all;
    for (const auto& [key, id] : open_)
      if (!key.starts_with('/') && key.find("//") == std::string_view::npos) all.push_back(id);
    return all;
  }

 private:
  [[nodiscard]] static std::vector<std::string_view> keys_of(const object_names& names,
                                                             const std::vector<object_id>& ids) {
    std::vector<std::string_view> keys;
    keys.reserve(ids.size());
    for (const object_id id : ids) keys.push_back(names[id].key);
    return keys;
  }

  std::size_t maximum_, seen_ = 0;
  bucket_list pages_;
  std::unordered_multimap<std::string_view, object_id> open_;  // not found yet
};

}  // namespace penstock::inline v0_1::detail::s3

// ---- penstock/storage/s3/requests/known_objects.hpp

namespace penstock::inline v0_1::detail::s3 {

/// What is known of an object.
struct object_facts {
  std::uint64_t size = 0, stamp = 0;           // the stamp is a hash of the tag
  std::string tag;                             // without W/; empty: not known yet, or there is none
  std::string if_match;                        // a strong tag
  std::unique_ptr<const object_facts> before;  // without the tag; requests may refer to it

  /// Whether only the stamp is known of a tag that the object must have.
  [[nodiscard]] bool expected() const noexcept { return tag.empty() && stamp != 0; }
};

/// What a session knows of its objects. What was noted first of an object holds for as long as this lives.
///
/// Threads: any number; no locks.
class known_objects {
 public:
  explicit known_objects(std::size_t count) : facts_(count), count_(count) {}
  known_objects(const known_objects&) = delete;
  known_objects& operator=(const known_objects&) = delete;
  ~known_objects() {
    for (std::size_t i = 0; i < count_; ++i) delete facts_[i].load(std::memory_order_relaxed);
  }

  /// Null if nothing is known; what it points to lives as long as this.
  [[nodiscard]] const object_facts* operator[](object_id id) const noexcept {
    return facts_[id].load(std::memory_order_acquire);
  }
  /// Notes a signature whose tag an answer to a read will tell. False if it says nothing of the tag, or
  /// another one is known.
  [[nodiscard]] bool expect(object_id id, object_version what) {
    if (what.stamp == 0) return false;
    if ((*this)[id] == nullptr) {
      auto made = std::make_unique<object_facts>();
      made->size = what.size;
      made->stamp = what.stamp;
      const object_facts* none = nullptr;
      if (facts_[id].compare_exchange_strong(none, made.get(), std::memory_order_acq_rel)) {
        (void)made.release();
        return true;
      }
    }
    return (*this)[id]->size == what.size && (*this)[id]->stamp == what.stamp;
  }
  /// Whether what a store says agrees with what is known, or is now what is known.
  [[nodiscard]] bool settle(object_id id, std::uint64_t size, std::string_view tag) {
    auto fresh = std::make_unique<object_facts>();
    fresh->size = size;
    fresh->tag = tag_of(tag);
    fresh->stamp = fresh->tag.empty() ? 0 : fingerprint().add(fresh->tag).value();
    if (!tag.starts_with("W/")) fresh->if_match = fresh->tag;
    const object_facts* there = (*this)[id];
    for (;;) {
      if (there != nullptr && there->size != size) return false;
      const bool tags = there != nullptr && there->stamp != 0 && fresh->stamp != 0;
      if (tags && there->stamp != fresh->stamp) return false;
      if (there != nullptr && !(tags && there->expected())) return true;
      fresh->before.reset(there);
      if (facts_[id].compare_exchange_weak(there, fresh.get(), std::memory_order_acq_rel)) {
        (void)fresh.release();
        return true;
      }
      (void)fresh->before.release();
    }
  }

 private:
  fixed_array<std::atomic<const object_facts*>> facts_;
  std::size_t count_;
};

}  // namespace penstock::inline v0_1::detail::s3

// ---- penstock/storage/s3/requests/stored_objects.hpp

namespace penstock::inline v0_1::detail::s3 {

/// Reads ranges of objects of a store. The first answer, a list, or who uses the session tells an object's
/// size and ETag, which hold for the session: a later answer that differs is an error.
class stored_objects {
  struct reading : store_call {
    read_request request;
    read_listener listener;
    stored_objects* from = nullptr;
    std::byte one_byte{};
  };
  /// From so many names on, one list takes the place of a request for each.
  static constexpr std::size_t few = 8;
  /// What is asked by a list.
  static constexpr object_id everything = ~object_id{0};

 public:
  stored_objects(shared<const object_names> list, const s3_options& options, wall_clock clock = {})
      : list_(std::move(list)),
        objects_(list_->names.size()),
        verifies_(options.verify_checksums),
        max_in_flight_(options.connection.connections),
        retries_(policy_of(options.connection)),
        store_(std::in_place, options, clock) {}
  stored_objects(const stored_objects&) = delete;
  stored_objects& operator=(const stored_objects&) = delete;
  ~stored_objects() { store_.reset(); }  // its threads end before what they use

  [[nodiscard]] object_version version(object_id id) {
    const object_facts& found = find(id);
    return {found.size, found.stamp};
  }
  /// See `expecting_session`.
  [[nodiscard]] bool expect(object_id id, object_version what) {
    return id < list_->names.size() && objects_.expect(id, what);
  }
  [[nodiscard]] bool tagged(object_id id) const noexcept {
    const object_facts* const there = id < list_->names.size() ? known(id) : nullptr;
    return there != nullptr && there->stamp != 0;
  }
  void read(object_id id, std::uint64_t offset, mutable_bytes into) {
    reading one;
    if (!prepare(one, {id, offset, into})) return;
    store_->perform(one);
    finish(one);
  }
  void read_many(std::span<const read_request> requests, read_listener listener) noexcept {
    std::vector<store_call*> begun;
    for (const read_request& request : requests) {
      std::exception_ptr failed;
      try {
        begun.reserve(requests.size());
        auto one = std::make_unique<reading>();
        if (prepare(*one, request)) {
          one->listener = listener;
          one->from = this;
          one->tag = request.tag;
          one->owner = one.get();
          one->ended = read_ended;
          begun.push_back(one.release());
          continue;
        }
      } catch (...) {
        failed = std::current_exception();
      }
      listener.done(listener.self, request.tag, std::move(failed));
    }
    if (!begun.empty()) store_->begin(begun);
  }
  void cancel() noexcept {
    flight_.cancel();
    pauses_.cancel();
    store_->cancel();
  }
  /// Ends the reads of `read_many` with that tag.
  void abandon(std::uint64_t tag) noexcept { store_->abandon(tag); }
  void end_reads() noexcept {
    flight_.cancel();
    pauses_.cancel();
    store_->refuse();
  }
  [[nodiscard]] storage_counters counters() const noexcept {
    const auto& counted = store_->counted();
    return {.requests = counted.requests.load(),
            .bytes = bytes_.load(),
            .slow_downs = counted.slow_downs.load() + store_->other_slow_downs()};
  }
  [[nodiscard]] std::size_t max_in_flight() const noexcept { return max_in_flight_; }
  [[nodiscard]] std::uint64_t connections() const noexcept { return store_->counted().connections.load(); }

 private:
  [[nodiscard]] const object_facts* known(object_id id) const noexcept { return objects_[id]; }
  void address(store_call& what, object_id id) const {
    if (id >= list_->names.size()) throw error(errc::argument, {"there is no object ", id});
    const object_name object = (*list_)[id];
    what.bucket = object.bucket;
    what.key = object.key;
    what.name = list_->names[id];
  }

  /// Makes the request for a range; false if there is nothing to read. Throws for a range that is beyond the
  /// end of an object whose size is known.
  bool prepare(reading& one, const read_request& request) const {
    one.request = request;
    address(one, request.object);
    const std::uint64_t size = request.into.size();
    const object_facts* const there = known(request.object);
    const bool overflows = size > std::numeric_limits<std::uint64_t>::max() - request.offset;
    if (overflows || (there != nullptr && request.offset + size > there->size))
      throw beyond_end(one, there != nullptr ? std::optional(there->size) : std::nullopt);
    if (size == 0 && (request.offset == 0 || there != nullptr)) return false;
    // That an empty range is inside the object shows by the byte before it.
    one.offset = size == 0 ? request.offset - 1 : request.offset;
    one.into = size == 0 ? mutable_bytes(&one.one_byte, 1) : request.into;
    if (there != nullptr) {
      one.if_match = there->if_match;
      one.size = there->size;
    }
    if (verifies_ && one.offset == 0 && (there == nullptr || there->size == size))
      one.more.push_back({"x-amz-checksum-mode", "ENABLED"});
    return true;
  }
  [[nodiscard]] static error beyond_end(const reading& one, std::optional<std::uint64_t> size) {
    std::string line =
        text({"the range of ", one.request.into.size(), " bytes goes beyond the end of the object"});
    if (size) append(line, {", which has ", *size});
    return error(errc::format, line).in_file(one.name).at_offset(one.request.offset);
  }

  static void read_ended(void* self, store_call&, std::exception_ptr failed) noexcept {
    const std::unique_ptr<reading> one(static_cast<reading*>(self));
    if (!failed) {
      try {
        one->from->finish(*one);
      } catch (...) {
        failed = std::current_exception();
      }
    }
    one->listener.done(one->listener.self, one->request.tag, std::move(failed));
  }
  /// Throws unless the answer was the range.
  void finish(reading& one) {
    const web::answer& reply = one.reply;
    if (reply.status == 200 || reply.status == 206) {
      const auto total = web::total_length(reply);
      const object_facts* const there = known(one.request.object);
      if (!total && there == nullptr)
        throw one.with_facts(error(errc::io, "the store does not tell how long the object is")).recurring();
      pin(one, one.request.object, total ? *total : there->size);
      if (verifies_ && one.offset == 0 && total == one.into.size()) verify(one);
      bytes_.fetch_add(one.request.into.size(), std::memory_order_relaxed);
      return;
    }
    if (reply.status == 416) {
      const auto range = parse_content_range(reply.header("Content-Range"));
      const auto total = range ? range->total : std::nullopt;
      if (total && known(one.request.object) != nullptr) pin(one, one.request.object, *total);
      if (!total || one.offset + one.into.size() > *total) throw beyond_end(one, total);
    }
    throw one.failure_of_answer();
  }
  static void verify(const reading& one) {
    const auto given = s3::checksum_of([&](std::string_view name) { return one.reply.header(name); });
    if (given && s3::checksum_of(given->name, one.into) != given->value)
      throw one.failure(
          {"the bytes that came do not have the ", given->name, " that the store keeps of them"});
  }

  // ---- Size and ETag

  /// Notes what a store tells of an object, or compares it with what is known.
  void pin(const store_call& what, object_id id, std::uint64_t size) {
    if (objects_.settle(id, size, what.reply.header("ETag"))) return;
    std::string line = "the object was replaced while it was read";
    if (known(id)->size != size)
      append(line, {": it had ", known(id)->size, " bytes, and has ", size});
    else if (known(id)->expected())
      line = "the object was replaced after the dataset was opened";
    throw what.with_facts(error(errc::io, line + "; start again with the new one")).recurring();
  }

  const object_facts& find(object_id id) {
    if (id >= list_->names.size()) throw error(errc::argument, {"there is no object ", id});
    if (known(id) == nullptr && list_->names.size() > few && !listed_.load())
      flight_.ask(everything, [&] {
        if (!listed_.load()) list_all();
      });
    if (known(id) == nullptr && listed_.load() && missing_[id])
      throw error(errc::io, "NoSuchKey: there is no such object; the store's list does not have it")
          .recurring()
          .in_file(list_->names[id]);
    if (known(id) == nullptr)
      flight_.ask(id, [&] {
        if (known(id) == nullptr) find_by_head(id);
      });
    return *known(id);
  }
  void find_by_head(object_id id) {
    store_call head;
    head.method = web::verb::head;
    address(head, id);
    store_->perform(head);
    const web::answer& reply = head.reply;
    if (reply.status == 200 && reply.length) return pin(head, id, *reply.length);
    if (may_pass(reply.status)) throw head.failure_of_answer();
    find_by_range(id);  // whose answer says more
  }
  void find_by_range(object_id id) {
    std::byte first{};
    store_call get;
    address(get, id);
    get.offset = 0;
    get.into = {&first, 1};
    store_->perform(get);
    const auto total = web::total_length(get.reply);
    if (get.succeeded() && total) return pin(get, id, *total);
    const auto range = parse_content_range(get.reply.header("Content-Range"));
    if (get.reply.status == 416 && range && range->total == 0u) return pin(get, id, 0);
    throw get.failure_of_answer();
  }

  /// Asks for sizes and ETags of all objects at once. What is not found so is asked for at its use: where
  /// nobody may list, and entries without an ETag. Called again after a failure, it goes on where it was.
  void list_all() {
    if (searches_.empty()) {
      std::map<std::string_view, std::vector<object_id>> buckets;
      for (std::size_t i = 0; i < list_->names.size(); ++i)
        buckets[(*list_)[i].bucket].push_back(static_cast<object_id>(i));
      for (const auto& [bucket, ids] : buckets)
        if (ids.size() > few) searches_.emplace_back(*list_, bucket, ids);
      missing_.resize(list_->names.size());
    }
    const std::uint64_t round = pauses_.round();
    bool advances = false;
    const auto wait = [&](std::chrono::nanoseconds time) { pauses_.wait(time, round); };
    while (!searches_.empty()) {
      bucket_search& now = searches_.back();
      const auto next = [&] { return now.next(*store_); };
      try {
        while (!now.done()) {
          // Who asked tries again what fails at once. Between pages that come, that would be too few attempts
          // for a long list.
          const list_page page = advances ? retries_.insist(next, wait) : next();
          now.take(page, [&](object_id id, const listed_object& one) {
            // An object that is another one by now shows at its next read.
            if (!tag_of(one.etag).empty()) (void)objects_.settle(id, one.size, one.etag);
          });
          advances = true;
        }
        for (const object_id id : now.missing()) missing_[id] = true;
      } catch (const error& e) {
        if (e.code() != errc::io || !e.recurs()) throw;  // it may pass; or it was stopped
      }
      searches_.pop_back();
    }
    listed_.store(true);
  }

  shared<const object_names> list_;
  known_objects objects_;
  bool verifies_;
  std::size_t max_in_flight_;
  std::atomic<std::uint64_t> bytes_{0};
  single_flight flight_;
  // Used by who asks about `everything`.
  std::vector<bucket_search> searches_;  // to be done
  std::vector<bool> missing_;            // constant once `listed_` is set
  retrier retries_;
  cancellable_pauses pauses_;
  std::atomic<bool> listed_{false};
  std::optional<store> store_;
};

}  // namespace penstock::inline v0_1::detail::s3

// ---- penstock/storage/s3/requests/plain_s3.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// What `s3` reads through: one request per read, and a second one only if an answer asks for it. Failures
/// are not retried.
class plain_s3 {
 public:
  class session {
   public:
    static constexpr bool views = false;
    static constexpr bool has_latency = true;

    [[nodiscard]] std::uint64_t size(object_id id) const { return version(id).size; }
    /// The object's size, and a hash of its ETag. Asked for once.
    [[nodiscard]] object_version version(object_id id) const { return objects_->version(id); }
    /// See `expecting_session`.
    [[nodiscard]] bool expect(object_id id, object_version what) const { return objects_->expect(id, what); }
    /// See `tagging_session`.
    [[nodiscard]] bool tagged(object_id id) const { return objects_->tagged(id); }
    void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
      objects_->read(id, offset, into);
    }
    void read_many(std::span<const read_request> requests, read_listener listener) const noexcept {
      objects_->read_many(requests, listener);
    }
    /// Ends all requests in flight, those of `read` and those for credentials included.
    void cancel() const noexcept { objects_->cancel(); }
    /// Ends those of `read_many` with that tag.
    void abandon(std::uint64_t tag) const noexcept { objects_->abandon(tag); }
    /// As `cancel`, and lets reads that begin later end at once with errc::stopped.
    void end_reads() const noexcept { objects_->end_reads(); }
    void will_need(object_id, std::uint64_t, std::uint64_t) const noexcept {}

    /// Requests sent, those answered by an error or a redirect included; bytes of objects; answers that asked
    /// for fewer requests. Of at most as many requests in flight as there may be connections.
    [[nodiscard]] session_report report() const noexcept {
      return {.counters = objects_->counters(), .counted = true, .max_in_flight = objects_->max_in_flight()};
    }
    /// Connections opened so far.
    [[nodiscard]] std::uint64_t connections() const noexcept { return objects_->connections(); }

   private:
    friend plain_s3;
    explicit session(std::unique_ptr<s3::stored_objects> made) : objects_(std::move(made)) {}

    std::unique_ptr<s3::stored_objects> objects_;
  };

  plain_s3(shared<const s3::object_names> list, s3_options options)
      : list_(std::move(list)), options_(std::move(options)) {}

  [[nodiscard]] std::span<const std::string> names() const noexcept { return list_->names; }
  [[nodiscard]] session connect() const {
    return session(std::make_unique<s3::stored_objects>(list_, options_));
  }

 private:
  shared<const s3::object_names> list_;
  s3_options options_;
};

static_assert(storage<plain_s3> && abandoning_session<plain_s3::session> &&
                  latent_session<plain_s3::session> && reports<plain_s3::session>,
              "plain_s3 is a storage that reads in the background");

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/storage/s3/requests/upload.hpp

namespace penstock::inline v0_1::detail::s3 {

/// How uploads are cut and tried again.
struct upload_plan {
  std::size_t part_size = 0;
  std::size_t max_in_flight = 0;
  retry_policy retries{};

  /// The size of part `number`, from 1 on: doubled after each 1000, so that 10,000 parts are enough.
  [[nodiscard]] std::size_t size_of(std::size_t number) const noexcept {
    constexpr std::size_t largest = std::size_t{5} << 30;
    const std::size_t doubled = std::min<std::size_t>((number - 1) / 1000, 9);
    return std::min(part_size << doubled, largest);
  }
};

/// One object on its way to a store. Bytes gather in a part, which goes on its way when it is full; of those
/// that are on their way the memory is kept, so that they can be sent again. An object that fits into one
/// part is put by one request.
///
/// Threads: one at a time, and the store's, which tell how parts have ended.
class upload {
  using clock = std::chrono::steady_clock;
  struct part : store_call {
    upload* of = nullptr;
    std::size_t number = 0;
    unsigned attempt = 1;
    bool waits = false;  // until `again`
    clock::time_point first_failed{}, again{};
    std::optional<error> failed;
  };

 public:
  upload(store& with, const upload_plan& how, std::string name)
      : with_(with),
        how_(how),
        retries_(how.retries),
        name_(std::move(name)),
        object_(parse_object_name(name_)) {}
  upload(const upload&) = delete;
  upload& operator=(const upload&) = delete;
  ~upload() { abort(); }

  void write(bytes_view bytes) {
    while (!bytes.empty()) {
      const std::size_t full = how_.size_of(etags_.size() + 1);
      if (gathered_.empty()) gathered_.reserve(std::min(full, how_.part_size));
      const std::size_t now = std::min(bytes.size(), full - gathered_.size());
      gathered_.append(reinterpret_cast<const char*>(bytes.data()), now);
      bytes = bytes.subspan(now);
      size_ += now;
      if (gathered_.size() == full) send_part();
    }
  }
  /// Makes the object appear; returns its ETag.
  [[nodiscard]] std::string finish() {
    if (id_.empty()) return put_whole();
    if (!gathered_.empty()) send_part();
    wait_until([&] { return open_.empty(); });
    std::string tag = complete();
    id_.clear();
    return tag;
  }
  /// Ends what is on its way; the store forgets the parts that it has.
  void abort() noexcept {
    try {
      with_.cancel();
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return flying_ == 0; });
      open_.clear();
      lock.unlock();
      if (id_.empty()) return;
      const std::string id = std::exchange(id_, {});
      // Nobody waits long for what is given up.
      retry_policy few = how_.retries;
      few.attempts = std::min(few.attempts, 3u);
      few.initial_backoff = std::min(few.initial_backoff, std::chrono::milliseconds(100));
      few.max_retry_after = std::chrono::milliseconds(0);
      retrier briefly(few);
      (void)ask(briefly, "abort an upload", [&](store_call& call) {
        call.method = web::verb::delete_;
        call.query = {{"uploadId", id}};
      });
    } catch (...) {  // it stays in the store, as it would if this program was killed
    }
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] std::uint64_t retries() const noexcept { return retried_; }

 private:
  // ---- Small requests, one at a time

  void address(store_call& call) const {
    call.bucket = object_.bucket;
    call.key = object_.key;
    call.name = name_;
  }
  /// Sends a request until it succeeds, as often as `retries` lets it. `accept` may throw, too.
  template <class Fill, class Accept>
  auto ask(retrier& retries, std::string_view doing, Fill&& fill, Accept&& accept) {
    const auto once = [&] {
      store_call call;
      address(call);
      call.doing = doing;
      call.max_body = std::size_t{1} << 20;
      fill(call);
      try {
        with_.perform(call);
        if (!call.succeeded()) throw call.failure_of_answer();
        return accept(call);
      } catch (error& e) {
        if (e.file().empty()) e.in_file(name_);
        throw;
      }
    };
    return retries.insist(once, [&](std::chrono::nanoseconds time) {
      retries.pause(time);
      ++retried_;
    });
  }
  template <class Fill>
  std::string ask(retrier& retries, std::string_view doing, Fill&& fill) {
    return ask(retries, doing, fill, [](store_call& call) { return std::string(call.reply.header("ETag")); });
  }

  std::string put_whole() {
    return ask(retries_, "put an object", [&](store_call& call) {
      call.method = web::verb::put;
      call.body = gathered_;
    });
  }
  void start() {
    id_ = ask(
        retries_, "start an upload",
        [](store_call& call) {
          call.method = web::verb::post;
          call.query = {{"uploads", ""}};
        },
        [this](store_call& call) {
          started_ = parse_http_date(call.reply.header("Date"));
          return read_upload_id(call.reply.body);
        });
  }
  std::string complete() {
    const auto accept = [&](store_call& call) { return read_completion(answer_of(call.reply)); };
    const auto fill = [&](store_call& call) {
      call.method = web::verb::post;
      call.query = {{"uploadId", id_}};
      call.body = completion_of(etags_);
    };
    const std::uint64_t before = retried_;
    try {
      return ask(retries_, "complete an upload", fill, accept);
    } catch (const error& e) {
      // An attempt that got no answer may have done it.
      if (retried_ == before || e.message().find("NoSuchUpload") == std::string_view::npos) throw;
    }
    bool ours = false;
    std::string tag = ask(
        retries_, "look for an object", [](store_call& call) { call.method = web::verb::head; },
        [&](store_call& call) {
          ours = call.reply.length == size_ && is_made_now(call.reply);
          return std::string(call.reply.header("ETag"));
        });
    if (!ours)
      throw error(errc::io, "the upload ended without its object; was it aborted by somebody else?")
          .in_file(name_);
    return tag;
  }
  /// Whether an object of the right size is this upload's, and none that was there before: it has the ETag
  /// that S3 makes of the parts', or, since some stores and encryptions make others, it is not older than the
  /// upload. Last-Modified, in whole seconds, is the time when an upload began or ended.
  [[nodiscard]] bool is_made_now(const web::answer& reply) const {
    const std::string expected = tag_of_parts(etags_);
    if (!expected.empty() && tag_of(reply.header("ETag")) == expected) return true;
    const auto modified = parse_http_date(reply.header("Last-Modified"));
    return started_ && modified && *modified + std::chrono::seconds(2) >= *started_;
  }

  // ---- Parts

  void send_part() {
    if (id_.empty()) start();
    if (etags_.size() == 10'000)
      throw error(errc::limit, "an object in S3 has at most 10000 parts; use a larger part_size")
          .in_file(name_);
    wait_until([&] { return open_.size() < how_.max_in_flight; });
    auto made = std::make_unique<part>();
    made->of = this;
    made->number = etags_.size() + 1;
    made->body = std::exchange(gathered_, {});
    part& one = *made;
    {
      const std::scoped_lock lock(mutex_);
      etags_.emplace_back();
      open_.push_back(std::move(made));
    }
    begin(one);
  }
  void begin(part& one) {
    address(one);
    one.method = web::verb::put;
    one.doing = "put a part of an object";
    one.query = {{"partNumber", text({one.number})}, {"uploadId", id_}};
    one.owner = &one;
    one.ended = part_ended;
    one.renewed = one.resynced = one.moved = false;
    one.begun = {};
    one.failed.reset();
    {
      const std::scoped_lock lock(mutex_);
      ++flying_;
    }
    store_call* const only = &one;
    with_.begin({&only, 1});
  }
  static void part_ended(void* self, store_call& call, std::exception_ptr failed) noexcept {
    part& one = *static_cast<part*>(self);
    upload& all = *one.of;
    std::optional<error> failure;
    try {
      if (failed) std::rethrow_exception(failed);
      if (!call.succeeded()) throw call.failure_of_answer();
      if (call.reply.header("ETag").empty())
        throw call.failure({"the store took a part without giving its ETag"});
    } catch (const error& e) {
      failure = own_copy(e);
    } catch (const std::exception& e) {
      failure.emplace(errc::io, e.what());
    }
    const std::scoped_lock lock(all.mutex_);
    --all.flying_;
    if (failure) {
      one.failed = std::move(failure);
      failure.reset();  // under the lock: both share the message
      if (one.attempt == 1) one.first_failed = clock::now();
    } else {
      all.etags_[one.number - 1] = call.reply.header("ETag");
      std::erase_if(all.open_, [&](const auto& each) { return each.get() == &one; });
    }
    all.changed_.notify_one();
  }
  /// Waits, and meanwhile sends parts again that have failed; throws for one that has failed for good.
  template <class Done>
  void wait_until(Done&& done) {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (how_.retries.stop.stop_requested())
        throw error(errc::stopped, "the upload was ended by the stop token").in_file(name_);
      constexpr std::chrono::milliseconds looks_again{200};  // a pause is not told of a stop
      auto next = how_.retries.stop.stop_possible() ? clock::now() + looks_again : clock::time_point::max();
      part* due = nullptr;
      for (const auto& one : open_) {
        if (!one->failed) continue;
        if (!one->waits) {
          const retry_decision then = retries_.after({0, one->number, {}}, one->attempt,
                                                     read_failure::of(*one->failed), one->first_failed);
          if (!then.again) then.explain(*one->failed, one->attempt);
          if (!then.again) throw error(*one->failed);
          one->waits = true;
          one->again = then.due;
        }
        if (one->again <= clock::now()) {
          due = one.get();
          break;
        }
        next = std::min(next, one->again);
      }
      if (due != nullptr) {
        ++due->attempt;
        ++retried_;
        due->waits = false;
        lock.unlock();
        begin(*due);
        lock.lock();
      } else if (done()) {
        return;
      } else if (next == clock::time_point::max()) {
        changed_.wait(lock);
      } else {
        changed_.wait_until(lock, next);
      }
    }
  }

  store& with_;
  upload_plan how_;
  retrier retries_;
  std::string name_;
  object_name object_;
  std::string gathered_, id_;
  std::optional<wall_time> started_;  // when the upload began, by the store's clock
  std::uint64_t size_ = 0, retried_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<part>> open_;  // on their way, or to be sent again
  std::vector<std::string> etags_;
  std::size_t flying_ = 0;
};

}  // namespace penstock::inline v0_1::detail::s3

// ---- penstock/storage/s3.hpp

namespace penstock::inline v0_1 {

/// Storage of objects in S3, and in stores that speak its language: Google's, Ceph, MinIO, SeaweedFS, Swift,
/// AIStore.
///
///     const s3 shards("bucket/train-{0000..1023}.tar");
///     const s3 two({"s3://bucket/a.tar", "s3://another/b.tar"});
///     const s3 at_home("bucket/train-{0..9}.tar", {.place = {.endpoint = "http://10.0.0.7:9000"}});
///
/// In: `bucket/key` or `s3://bucket/key`, whose key is everything after the first slash, as it is: nothing is
/// decoded. Braces of a pattern are expanded by `expand_braces`; names of a list are taken as they are.
/// `s3::list` finds names. Nothing is opened before `connect`, and no request sent before the first use.
/// A session reads each range by one signed GET, and works otherwise as that of `http`: failures that may
/// pass are retried, and late reads get a second request, as the options of the connection say. Size and
/// ETag of an object are asked for when they are needed, or come with its first range; for more than 8
/// objects of a bucket they come from one list of what the keys have in common, unless the credentials do
/// not permit lists. From then on each request carries `If-Match`: an object that was replaced is an error,
/// never a mixture. A session that is told what to `expect`, as a dataset's runs do, asks for neither: the
/// first answer must have that ETag. Sessions share nothing, so that what is opened anew sees the objects of
/// today.
/// Credentials are looked for at the first request, as `s3_identity` says, and renewed before they expire.
/// What an answer asks for is done once for each request, and the request sent again: new credentials, the
/// store's time, another region.
/// Checksums: if a range is the whole object and the store gives a CRC-32, CRC-32C, CRC-64/NVME or SHA-256 of
/// it, the bytes are compared. Other ranges, checksums of parts (COMPOSITE), SHA-1 and MD5 are not.
/// Secrets: no name, error, description or counter has a key's id, a secret, a token or a signature.
/// Errors: as for `http`, with the store's code and what to do: errc::io that recurs for a missing object or
/// bucket, refused credentials, a replaced object; errc::io that does not for whatever may pass, SlowDown
/// included (see `error::retry_after_ms`), and for bytes without their checksum; errc::argument for names and
/// options that make no sense, and if there are no credentials; errc::format for a range beyond the end.
/// Threads: as for `http`. Cost: that of `http`, and about ten SHA-256 of a few hundred bytes for each
/// request.
/// Source: Amazon S3 API Reference.
class s3 {
 public:
  static constexpr std::string_view schemes[] = {"s3"};

  /// What a run reads through; see `background_session` and `latent_session`.
  class session : public detail::retried_session<detail::plain_s3> {
   public:
    /// Connections opened so far.
    [[nodiscard]] std::uint64_t connections() const noexcept { return inside().connections(); }

   private:
    friend s3;
    session(const detail::plain_s3& where, const detail::retry_policy& policy)
        : retried_session(where, policy) {}
  };

  explicit s3(std::string_view pattern, s3_options options = {})
      : s3(expanded(pattern), std::string(pattern), std::move(options)) {}
  explicit s3(std::vector<std::string> names, s3_options options = {})
      : s3(std::move(names), {}, std::move(options)) {}
  s3(std::initializer_list<const char*> names, s3_options options = {})
      : s3(std::vector<std::string>(names.begin(), names.end()), std::move(options)) {}

  /// The names of the objects that begin with `prefix`, sorted: `bucket/folder/train-`, or `bucket` for all.
  /// Left out are names with `.penstock-` after the last slash, which Penstock keeps beside shards, and the
  /// empty objects ending in a slash that stand for folders. Asks the store, by one request per 1000 objects,
  /// each tried again as reads are.
  [[nodiscard]] static std::vector<std::string> list(std::string_view prefix,
                                                     const s3_options& options = {}) {
    detail::check(options.connection);
    detail::s3::store with(options);
    return detail::s3::names_in(with, prefix, detail::policy_of(options.connection));
  }

  /// The objects, each as `s3://bucket/key`.
  [[nodiscard]] std::span<const std::string> names() const noexcept { return list_->names; }
  /// Throws errc::argument for a region, an endpoint, a profile or a `ca_file` that cannot be used.
  [[nodiscard]] session connect() const {
    return {detail::plain_s3(list_, options_), detail::policy_of(options_.connection)};
  }
  /// See `sidecar_storage`.
  [[nodiscard]] s3 sidecars(sidecar which) const {
    std::vector<std::string> sidecar_names;
    for (const std::string& one : list_->names) sidecar_names.push_back(which.of(one));
    return with_names(std::move(sidecar_names));
  }
  /// See `renaming_storage`.
  [[nodiscard]] s3 with_names(std::vector<std::string> names) const {
    return s3(std::move(names), {}, options_);
  }
  [[nodiscard]] std::string describe() const {
    const std::string what =
        list_->pattern.empty() ? detail::text({names().size(), " objects"}) : list_->pattern;
    std::string line = detail::text({"s3(", what, ", "});
    if (!options_.place.endpoint.empty())
      detail::append(line, {"at ", without_secrets(options_.place.endpoint), ", "});
    detail::append(line, {options_.connection.connections, " connections",
                          options_.connection.verify ? "" : ", certificates not verified", ")"});
    return line;
  }

 private:
  s3(std::vector<std::string> names, std::string pattern, s3_options options) : options_(std::move(options)) {
    detail::check(options_.connection);
    (void)detail::policy_of(options_.connection);
    auto list = std::make_unique<detail::s3::object_names>();
    list->pattern = std::move(pattern);
    for (const std::string& one : names) {
      const detail::s3::object_name found = detail::s3::parse_object_name(one);
      detail::s3::check_bucket(found.bucket, false);
      list->names.push_back(detail::text({"s3://", found.bucket, "/", found.key}));
    }
    list_.reset(list.release());
  }

  /// Errors of patterns show the pattern, which may begin with what looks like a key and a secret.
  [[nodiscard]] static std::vector<std::string> expanded(std::string_view pattern) {
    std::string_view bucket = pattern;
    if (bucket.starts_with("s3://")) bucket.remove_prefix(5);
    bucket = bucket.substr(0, bucket.find('/'));
    if (bucket.find_first_of("@:") != std::string_view::npos) return {std::string(pattern)};  // refused
    if (const std::size_t star = pattern.find('*'); star != std::string_view::npos)
      throw error(errc::argument,
                  {"'", pattern,
                   "' has a *, which s3 does not expand: let the store list the names, as in "
                   "s3(s3::list(\"",
                   pattern.substr(0, std::min(star, pattern.find('{'))),
                   "\")), or write braces, as in train-{0000..0127}.tar; a key with a * belongs in a list of "
                   "names"});
    return expand_braces(pattern);
  }

  shared<const detail::s3::object_names> list_;
  s3_options options_;
};

static_assert(sidecar_storage<s3> && background_session<s3::session> && latent_session<s3::session> &&
                  reports<s3::session>,
              "s3 is a storage that reads in the background");

}  // namespace penstock::inline v0_1

// ---- penstock/storage/s3_writer.hpp

namespace penstock::inline v0_1 {

/// Options of `s3_writer`: how objects are cut into parts.
struct s3_writer_options {
  /// The size of a part, from 5 MiB on, which is the least that S3 takes. Parts grow after each 1000, so that
  /// objects may have 5 TiB; stores that want parts of one size, as Cloudflare's, take 1000 times this.
  std::size_t part_size = std::size_t{8} << 20;
  /// How many parts are on their way at once. So many parts, and the one that is being filled, are in memory:
  /// 40 MiB at first, 80 MiB from the 1001st part on.
  std::size_t max_in_flight = 4;
  /// How often a request is sent before its failure is the error, if trying again may help.
  unsigned attempts = 8;
  /// The wait before the second attempt is a random part of this; it doubles for each further one, up to 20
  /// s.
  std::chrono::milliseconds initial_backoff{250};
};

/// Writes objects into S3, one after another, in parts that are sent while you write.
///
///     s3_writer out({.place = {.region = "eu-central-1"}}, {.max_in_flight = 8});
///
/// `open("bucket/key")`, `write(bytes)` as often as you like, and `finish()`; then the next `open`. The
/// object appears at `finish`, whole, in the place of one that was there before. `abort` gives an unfinished
/// object up; so does an error, the next `open`, and the destructor, and the store then forgets its parts.
/// Only a program that is killed, or stopped by `http_options::stop`, leaves parts there: let the bucket have
/// a lifecycle rule that aborts incomplete uploads.
/// In: names as for `s3`; objects of any size. What fits into one part is put by one request, everything else
/// by a multipart upload.
/// Each part is sent again if that may help, up to `attempts` times, with growing pauses, and no sooner than
/// the store asks, up to `connection.retries.max_retry_after`, and within `connection.retries.max_time`. The
/// store compares what arrives: by the signed SHA-256 over http, by Content-MD5 over https.
/// Errors: as for `s3`, with the object's name, after the upload was aborted: errc::io; errc::argument for
/// names and options that make no sense; errc::limit beyond 10,000 parts; errc::state for `write` and
/// `finish` without `open`. Secrets as for `s3`.
/// Threads: one at a time.
/// Cost: one copy of the bytes, and a hash of them. `write` waits while `max_in_flight` parts are on their
/// way.
/// Source: Amazon S3 User Guide, "Uploading and copying objects using multipart upload".
class s3_writer {
 public:
  /// Throws what `s3::connect` throws, and errc::argument for sizes that make no sense. Sends nothing.
  explicit s3_writer(s3_options options = {}, s3_writer_options how = {})
      : how_(checked(how, options)), store_(std::make_unique<detail::s3::store>(options)) {}
  s3_writer(s3_writer&&) noexcept = default;
  s3_writer& operator=(s3_writer&& other) noexcept {
    upload_.reset();  // before its store
    store_ = std::move(other.store_);
    upload_ = std::move(other.upload_);
    how_ = other.how_;
    retries_ = other.retries_;
    return *this;
  }
  ~s3_writer() = default;

  /// Begins an object; one that is unfinished is given up. Sends nothing.
  void open(std::string_view name) {
    abort();
    const detail::s3::object_name found = detail::s3::parse_object_name(name);
    detail::s3::check_bucket(found.bucket, false);
    upload_ = std::make_unique<detail::s3::upload>(*store_, how_,
                                                   detail::text({"s3://", found.bucket, "/", found.key}));
  }
  /// Appends bytes.
  void write(bytes_view bytes) {
    opened();
    try {
      upload_->write(bytes);
    } catch (...) {
      abort();
      throw;
    }
  }
  /// Makes the object appear. Returns its size and stamp, as `s3::session::version` gives them.
  object_version finish() {
    opened();
    try {
      const std::string tag = detail::s3::tag_of(upload_->finish());
      const object_version made{upload_->size(), tag.empty() ? 0 : fingerprint().add(tag).value()};
      abort();
      return made;
    } catch (...) {
      abort();
      throw;
    }
  }
  /// Gives an unfinished object up; waits until the store has forgotten it, or cannot be reached.
  void abort() noexcept {
    if (upload_ == nullptr) return;
    upload_->abort();
    retries_ += upload_->retries();
    upload_.reset();
  }

  /// Requests sent, attempts after the first, and answers that asked for fewer requests.
  [[nodiscard]] storage_counters counters() const noexcept {
    const auto& counted = store_->counted();
    return {.requests = counted.requests.load(),
            .slow_downs = counted.slow_downs.load() + store_->other_slow_downs(),
            .retries = retries_ + (upload_ == nullptr ? 0 : upload_->retries())};
  }

 private:
  void opened() const {
    if (upload_ == nullptr)
      throw error(
          errc::state,
          "no object is open in this s3_writer: call open(\"bucket/key\") first, also after an error");
  }
  [[nodiscard]] static detail::s3::upload_plan checked(const s3_writer_options& how,
                                                       const s3_options& options) {
    detail::check(options.connection);
    constexpr std::size_t least = std::size_t{5} << 20, largest = std::size_t{5} << 30;
    if (how.part_size < least || how.part_size > largest)
      throw error(errc::argument,
                  {"a part has from 5 MiB (", least, " bytes) to 5 GiB, not ", how.part_size});
    if (how.max_in_flight == 0 || how.max_in_flight > 1000)
      throw error(errc::argument, {"from 1 to 1000 parts are on their way at once, not ", how.max_in_flight});
    if (how.attempts == 0)
      throw error(errc::argument, "a request is sent at least once: attempts is 1 or more");
    if (how.initial_backoff.count() < 0 || how.initial_backoff > std::chrono::hours(1))
      throw error(errc::argument,
                  {"initial_backoff is from 0 ms to an hour, not ", how.initial_backoff.count(), " ms"});
    detail::retry_policy retries = detail::policy_of(options.connection);
    retries.attempts = how.attempts;
    retries.initial_backoff = how.initial_backoff;
    retries.max_backoff = std::chrono::seconds(20);
    retries.budget = 0;
    return {how.part_size, how.max_in_flight, retries};
  }

  detail::s3::upload_plan how_;
  std::uint64_t retries_ = 0;
  std::unique_ptr<detail::s3::store> store_;
  std::unique_ptr<detail::s3::upload> upload_;
};

static_assert(object_writer<s3_writer>, "s3_writer is a writer of objects");

}  // namespace penstock::inline v0_1
