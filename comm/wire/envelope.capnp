# What every frame of the control lane looks like inside; see envelope.hpp. Fields are only ever
# added, never renumbered: a build of another version must still be told that it is one.
@0xa1945d3c5e103579;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::comm::wire");

enum FrameKind {
  data @0;
  ackOnly @1;
  handshake @2;
}

struct Envelope {
  run @0 :Text;
  plan @1 :UInt32;
  from @2 :UInt32;
  to @3 :UInt32;
  fromLife @4 :UInt64;
  toLife @5 :UInt64;
  sequence @6 :UInt64;
  acknowledged @7 :UInt64;
  kind @8 :FrameKind;
  payload @9 :Data;
}
