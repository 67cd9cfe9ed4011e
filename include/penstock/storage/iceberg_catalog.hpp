// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<boost/beast/http/parser.hpp>) || !__has_include(<pugixml.hpp>)
#error "penstock/storage/iceberg_catalog.hpp needs Boost.Beast, pugixml and nlohmann-json: link penstock::s3"
#endif

#include <penstock/storage/resilience/retry_policy.hpp>
#include <penstock/storage/s3/requests/http_call.hpp>
#include <penstock/storage/web/web_client.hpp>

#include <nlohmann/json.hpp>

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
