import perfHooks from 'node:perf_hooks';
import timers from 'node:timers';

/** The real timers and clocks. Fake ones that a test installs after this module was loaded do not replace them. */
export const { setTimeout, clearTimeout, setImmediate } = timers;
export const realNow: () => number = Date.now;
export const performance = { now: perfHooks.performance.now.bind(perfHooks.performance) };
