"use strict";
// Numbers as people read them; the report writes them in the same way.
const three = (value) => {
  if (value === 0) return "0";
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(digits, 6));
};
const scaled = (value, steps) => {
  const [size, unit] = steps.find(([size]) => Math.abs(value) >= size) || steps.at(-1);
  return `${three(value / size)} ${unit}`;
};
const rate = (value) => scaled(value, [[1e9, "Gops/s"], [1e6, "Mops/s"], [1e3, "kops/s"], [1, "ops/s"]]);
const latency = (us) => scaled(us, [[1e6, "s"], [1e3, "ms"], [1, "µs"], [1e-3, "ns"]]);
const count = (value) => value.toLocaleString("en-US");
const percent = (share) => `${three(100 * share)} %`;
const time = (s) => {
  if (s < 60) return `${Math.round(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
  return `${Math.floor(s / 3600)} h ${Math.round((s % 3600) / 60)} min`;
};
const clock = (ms) => new Date(ms).toLocaleTimeString("en-GB");
