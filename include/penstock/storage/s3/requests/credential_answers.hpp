// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<nlohmann/json.hpp>)
#error "penstock/storage/s3/requests/credential_answers.hpp needs nlohmann-json: link penstock::s3"
#endif

#include <penstock/core/error.hpp>
#include <penstock/storage/s3/credentials.hpp>
#include <penstock/storage/s3/environment.hpp>
#include <penstock/storage/s3/error_result.hpp>
#include <penstock/storage/s3/profiles.hpp>
#include <penstock/storage/s3/requests/dates.hpp>
#include <penstock/storage/s3/requests/http_answer.hpp>
#include <penstock/storage/s3/requests/http_call.hpp>
#include <penstock/storage/s3/requests/xml.hpp>

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

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
