// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/resilience/retry_policy.hpp>
#include <penstock/storage/s3/aws_signature.hpp>
#include <penstock/storage/s3/endpoint.hpp>
#include <penstock/storage/s3/error_result.hpp>

#include <nlohmann/json.hpp>

#include <arpa/inet.h>

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
  request.body = query_of(form);
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
