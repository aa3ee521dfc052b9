import { Gauge, type Registry } from 'prom-client';

/** `berth_build_info`: which version this is, and of which Node, as labels of a gauge that is always 1. */
export function tellBuild(registers: Registry[], version: string): void {
  new Gauge({
    name: 'berth_build_info',
    help: 'The version of Berth that runs, and of Node.',
    labelNames: ['version', 'node'],
    registers,
  }).set({ version, node: process.version }, 1);
}
