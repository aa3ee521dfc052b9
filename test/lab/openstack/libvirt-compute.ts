import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { GUESTS, openBareHost } from '../libvirt/lab-host.ts';
import type { Answer } from './api.ts';
import { networks } from './catalog.ts';
import type { Cloud } from './cloud.ts';
import { mountPackages, withPackages } from './services.ts';
import { SITE, writeComputeSettings } from './settings.ts';

/** Number of its network namespace. */
const INDEX = 201;

/** A host of the cloud with libvirt and QEMU, whose machines boot. */
export interface LibvirtCompute extends AsyncDisposable {
  zone: string;
  /** The image of the tiny guest, by its id. */
  image: string;
  /** The end of nova-compute's log. */
  log(): string;
}

/** Adds such a host as a zone of its own, and the tiny guest as an image. */
export async function startLibvirtCompute(cloud: Cloud): Promise<LibvirtCompute> {
  const [name, zone] = ['cn3', 'real'];
  const host = await openBareHost(INDEX);
  const { tenants } = networks;
  // The lab is the router between the services, the host and its guests.
  writeFileSync('/proc/sys/net/ipv4/ip_forward', '1');
  execFileSync('ip', ['route', 'add', tenants.cidr, 'via', host.address]);
  host.run('sh', '-c', 'echo 1 >/proc/sys/net/ipv4/ip_forward');
  host.run('ip', 'link', 'add', tenants.bridge, 'type', 'bridge');
  host.run('ip', 'addr', 'add', `${tenants.gateway}/24`, 'dev', tenants.bridge);
  host.run('ip', 'link', 'set', tenants.bridge, 'up');

  const folder = join(host.folder, 'site');
  for (const each of ['etc', 'log', 'lock']) mkdirSync(join(folder, each), { recursive: true });
  const privsep = { helper_command: `privsep-helper --config-file ${SITE}/etc/nova-${name}.conf` };
  writeComputeSettings(folder, name, {
    DEFAULT: { my_ip: host.address, compute_driver: 'libvirt.LibvirtDriver', force_config_drive: true },
    libvirt: { virt_type: 'qemu', cpu_mode: 'none', images_type: 'qcow2' },
    nova_sys_admin: privsep,
    vif_plug_linux_bridge_privileged: privsep,
    privsep_osbrick: privsep,
  });
  mountPackages(host, folder);
  host.run('mount', '--bind', folder, SITE);
  const output = openSync(join(folder, 'log/nova-compute.log'), 'a');
  const argv = withPackages('nova-compute', '--config-file', `${SITE}/etc/nova-${name}.conf`);
  const child: ChildProcess = spawn(...host.enter(...argv), { stdio: ['ignore', output, output] });
  closeSync(output);
  const log = (): string => readFileSync(join(folder, 'log/nova-compute.log'), 'utf8').slice(-4000);

  await cloud.site.isSo('nova-api', async () => {
    if (child.exitCode !== null) throw new Error(`nova-compute has ended:\n${log()}`);
    const path = `/os-services?host=${name}&binary=nova-compute`;
    const { services } = await cloud.admin.send('nova-api', 'GET', path);
    return services.some(({ state }: Answer) => state === 'up');
  });
  await cloud.site.run('nova-manage', '--config-file', `${SITE}/etc/nova.conf`, 'cell_v2', 'discover_hosts');
  await cloud.operator.addZone(name, zone);
  const made = await cloud.admin.send('glance', 'POST', '/images', {
    ...{ name: 'tiny', disk_format: 'qcow2', container_format: 'bare', visibility: 'public' },
  });
  const file = readFileSync(join(GUESTS, 'tiny.qcow2'));
  await cloud.admin.send('glance', 'PUT', `/images/${made.id}/file`, file);
  return {
    zone,
    image: made.id,
    log,
    [Symbol.asyncDispose]: () => host.close(),
  };
}
