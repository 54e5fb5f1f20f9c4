// A cursor kept over the growth of its index.
#pragma once

#include <cstdint>
#include <span>

#include "draftd/index.h"

namespace draftd {

// The match of `context`, of which `cursor` was the match when the index's
// version was `version`. Costs little where the index has little new text and the
// match has not become longer: mostly it has not.
Cursor renewed(const Index& index, Cursor cursor, std::span<const Token> context, std::uint32_t version);

}  // namespace draftd
