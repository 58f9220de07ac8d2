// Several functions as one visitor of a variant.
#pragma once

namespace troupe::actors::chaos {

template <class... Ts>
struct overloaded : Ts... {
  using Ts::operator()...;
};

}  // namespace troupe::actors::chaos
