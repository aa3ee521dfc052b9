import { exec } from './exec/driver.ts';
import { incus } from './incus/driver.ts';
import type { DriverDefinition } from './kit/driver-definition.ts';
import { libvirt } from './libvirt/driver.ts';
import { openstack } from './openstack/driver.ts';
import { simulator } from './simulator/driver.ts';

/** Every driver. The first is the default if berth.yaml has no `platform.driver`. */
export const drivers = [simulator, exec, incus, libvirt, openstack] as const;

/** The driver that a configuration names. The schema accepts only registered names. */
export function driverNamed(name: string, among: readonly DriverDefinition[] = drivers): DriverDefinition {
  const driver = among.find((candidate) => candidate.name === name);
  if (driver === undefined) throw new Error(`no driver is registered as ${name}`);
  return driver;
}
