// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What services answer that give credentials: [how] [body]; 0 is the XML of STS, anything else JSON.

#include <penstock/storage/s3/requests/credential_answers.hpp>

#include "support/fuzz.hpp"

using namespace penstock_fuzz;
namespace s3 = penstock::detail::s3;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const unsigned how = in.number();
  const std::string_view body = penstock::text_of(in.rest());
  const std::string line = outcome([&] {
    const penstock::s3_credentials found = how == 0 ? s3::read_sts_credentials(body, "AssumeRoleResult")
                                                    : s3::read_json_credentials(body, "the service");
    must(!found.anonymous() && !found.secret().empty(), "credentials are whole");
    for (const std::string& one : {found.key_id(), found.secret(), found.session_token()})
      must(s3::fits_into_header(one), "a header can carry them");
  });
  must(line.size() < 200, "an error does not show the answer");
  return 0;
}
