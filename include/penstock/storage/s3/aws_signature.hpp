// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<openssl/hmac.h>)
#error "penstock/storage/s3/aws_signature.hpp needs OpenSSL: link penstock::s3"
#endif

#include <penstock/storage/s3/credentials.hpp>
#include <penstock/storage/s3/requests/hash.hpp>
#include <penstock/storage/s3/requests/http_call.hpp>

#include <tuple>

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

/// Signs requests with AWS Signature Version 4, by headers, for a service in a region. The signing key is
/// kept until the day or the secret changes. Anonymous credentials sign nothing: the target is made, and no
/// header is added.
///
/// Threads: one at a time; each thread that signs has a signer of its own.
/// Cost: about ten SHA-256 of a few hundred bytes; no allocation in the steady state.
/// Source: AWS, "Signature Version 4 signing process"; the examples of "Authenticating Requests" are tests.
class aws_signer {
 public:
  /// `service` is `s3` or `sts`: only S3 takes the payload's hash as a header.
  explicit aws_signer(std::string region, std::string service = "s3")
      : region_(std::move(region)), service_(std::move(service)) {}

  /// Signs with headers; `now` must be within 15 minutes of the server's time.
  void sign(const signable& request, const s3_credentials& as, wall_time now, signed_request& out) {
    write_query(request.query);
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
    sort(headers_, headers_used_, [](const name_value& a, const name_value& b) { return a.name < b.name; });
    write_scope();
    write_canonical(request);
    authorization_ = "AWS4-HMAC-SHA256 Credential=";
    authorization_.append(as.key_id()).append("/").append(scope_);
    authorization_.append(", SignedHeaders=").append(signed_names_).append(", Signature=");
    append_hex(authorization_, signature(as));
    set(out.headers, added++, "authorization", authorization_);
    end(request, out, added);
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
  template <class Before>
  static void sort(std::vector<name_value>& list, std::size_t used, Before&& before) {
    // An insertion sort: short lists, it is stable, and it allocates nothing.
    for (std::size_t i = 1; i < used; ++i)
      for (std::size_t j = i; j > 0 && before(list[j], list[j - 1]); --j) {
        list[j].name.swap(list[j - 1].name);
        list[j].value.swap(list[j - 1].value);
      }
  }

  /// Joins the query, encoded and then sorted by name and value.
  void write_query(std::span<const name_value> items) {
    std::size_t used = 0;
    for (const name_value& one : items) {
      set(queries_, used, {}, {});
      append_encoded(queries_[used].name, one.name);
      append_encoded(queries_[used++].value, one.value);
    }
    sort(queries_, used, [](const name_value& a, const name_value& b) {
      return std::tie(a.name, a.value) < std::tie(b.name, b.value);
    });
    query_.clear();
    for (std::size_t i = 0; i < used; ++i) {
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
  void write_scope() {
    scope_.assign(date_, 0, 8);
    scope_.append("/").append(region_).append("/").append(service_).append("/aws4_request");
  }
  void write_canonical(const signable& request) {
    signed_names_.clear();
    for (std::size_t i = 0; i < headers_used_; ++i) {
      if (i != 0 && headers_[i].name == headers_[i - 1].name) continue;
      if (i != 0) signed_names_ += ';';
      signed_names_ += headers_[i].name;
    }
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
    canonical_.append("\n").append(signed_names_).append("\n").append(request.payload);
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
  std::size_t headers_used_ = 0;
  std::string date_, scope_, query_, signed_names_, canonical_, to_sign_, authorization_;
  s3_credentials key_of_;
  std::string scope_of_key_;
  digest signing_key_{};
};

}  // namespace penstock::inline v0_1::detail::s3
