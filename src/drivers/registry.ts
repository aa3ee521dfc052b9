import { exec } from './exec/driver.ts';
import { incus } from './incus/driver.ts';
import type { DriverDefinition } from './kit/driver-definition.ts';
import { libvirt } from './libvirt/driver.ts';
import { simulator } from './simulator/driver.ts';

/** Every driver there is. The first is the one that a berth.yaml without `platform.driver` means. */
export const drivers = [simulator, exec, incus, libvirt] as const;

/** The driver that a configuration names. Its schema has let no other name pass. */
export function driverNamed(name: string, among: readonly DriverDefinition[] = drivers): DriverDefinition {
  const driver = among.find((candidate) => candidate.name === name);
  if (driver === undefined) throw new Error(`no driver is registered as ${name}`);
  return driver;
}
