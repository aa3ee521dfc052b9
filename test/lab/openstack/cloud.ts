import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { stringify } from 'yaml';
import { type Answer, type Api, userOf } from './api.ts';
import { type ComputeName, computes, networks, owner } from './catalog.ts';
import { Operator } from './operator.ts';
import { type ServiceName, Site } from './services.ts';
import { type ApiName, authUrl, ports, region, SECRET, TOKEN_CACHE_S, urlOf } from './settings.ts';

const computeNames = Object.keys(computes) as ComputeName[];
const isApi = (name: string): name is ApiName => name in ports;

/** Debian's OpenStack services with two hosts, and a project `berth` with a user, networks and quotas. */
export class Cloud implements AsyncDisposable {
  readonly site: Site;
  readonly authUrl = authUrl;
  readonly region = region;
  /** An application credential of the user `berth`. */
  readonly applicationCredential: { id: string; secret: string };
  /** The cloud's administrator, in the project `berth`. */
  readonly admin: Api = userOf('admin', owner.project);
  /** The user `berth` of the project, with its password. */
  readonly own: Api = userOf(owner.user, owner.project);
  readonly operator = new Operator(this.admin);

  private constructor(site: Site) {
    this.site = site;
    const id = readFileSync(join(site.folder, 'application-credential'), 'utf8');
    this.applicationCredential = { id, secret: SECRET };
  }

  /** Starts every service; ready when each API answers and each host is up. */
  static async start(): Promise<Cloud> {
    const site = await Site.open(computeNames, 'template');
    try {
      const cloud = new Cloud(site);
      await site.startKeystone();
      site.startServices(computeNames);
      await site.answer();
      for (const host of computeNames) await cloud.shown(host, 'up');
      await cloud.#volumesAreServed();
      // Neutron 21 cannot list ports before it has listed something else.
      await cloud.tenantsNetwork();
      return cloud;
    } catch (error) {
      await site[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** An entry of clouds.yaml for Berth. */
  get entry() {
    return {
      auth_type: 'v3applicationcredential',
      auth: {
        auth_url: this.authUrl,
        application_credential_id: this.applicationCredential.id,
        application_credential_secret: this.applicationCredential.secret,
      },
      region_name: this.region,
    };
  }

  /** Writes a clouds.yaml with one entry, `lab`. Returns its path. */
  writeCloudsFile(name = 'clouds.yaml', entry: object = this.entry): string {
    const file = join(this.site.folder, name);
    writeFileSync(file, stringify({ clouds: { lab: entry } }), { mode: 0o600 });
    return file;
  }

  async #volumesAreServed(): Promise<void> {
    await this.site.isSo('cinder-volume', async () => {
      const { services } = await this.admin.send('cinder-api', 'GET', '/os-services');
      return services.filter(({ state }: Answer) => state === 'up').length === 2;
    });
  }

  /** As if its host's power failed: the machines on it are still Nova's. */
  async killCompute(name: ComputeName): Promise<void> {
    await this.site.stop(name);
  }

  /** Ready when it is shown as up. */
  async startCompute(name: ComputeName): Promise<void> {
    this.site.startCompute(name);
    await this.shown(name, 'up');
  }

  /** Waits until Nova shows the host in this state. */
  async shown(host: string, state: 'up' | 'down'): Promise<void> {
    await this.site.isSo('nova-api', async () => {
      const { services } = await this.admin.send(
        'nova-api',
        'GET',
        `/os-services?host=${host}&binary=nova-compute`,
      );
      return services[0]?.state === state;
    });
  }

  async kill(name: ServiceName): Promise<void> {
    await this.site.stop(name);
  }

  /** Kills it if it runs, and starts it again. Ready when it answers. */
  async restart(name: ServiceName): Promise<void> {
    await this.site.stop(name);
    this.site.start(name);
    if (isApi(name)) await this.site.answers(name);
  }

  /** No service accepts a token that was given out before. @throws {Error} if one does */
  async expireTokens(): Promise<void> {
    const headers = { 'x-auth-token': await this.own.logIn() };
    const keys = join(this.site.folder, 'keys');
    for (const name of readdirSync(keys))
      writeFileSync(join(keys, name), randomBytes(32).toString('base64url').concat('='));
    await sleep(TOKEN_CACHE_S * 1000 + 500);
    const { status } = await fetch(`${urlOf('nova-api')}/v2.1/servers`, { headers });
    if (status !== 401) throw new Error(`Nova answers ${status} to a token that has expired`);
  }

  /**
   * Everything that machines and volumes can leave behind in the project, by kind and name. The security group is left
   * out: it is made once.
   */
  async contents(): Promise<string[]> {
    const { admin } = this;
    const list = async (service: ApiName, path: string, kind: string): Promise<Answer[]> =>
      (await admin.send(service, 'GET', path))[kind];
    const mine = async (kind: string): Promise<Answer[]> => {
      const all = await list('neutron', `/${kind}`, kind);
      return all.filter(({ project_id }) => project_id === admin.project);
    };
    const [servers, volumes, snapshots, images, keypairs, portsOfProject, floating] = await Promise.all([
      list('nova-api', '/servers/detail', 'servers'),
      list('cinder-api', '/volumes/detail', 'volumes'),
      list('cinder-api', '/snapshots', 'snapshots'),
      list('glance', '/images?visibility=all', 'images'),
      this.own.send('nova-api', 'GET', '/os-keypairs').then(({ keypairs }) => keypairs),
      mine('ports'),
      mine('floatingips'),
    ]);
    return [
      ...servers.map(({ name, status }) => `server ${name} ${status}`),
      ...volumes.map(({ name, id, status }) => `volume ${name || id} ${status}`),
      ...snapshots.map(({ name }) => `snapshot ${name}`),
      ...images.filter(({ visibility }) => visibility !== 'public').map(({ name }) => `image ${name}`),
      ...keypairs.map(({ keypair }: Answer) => `key pair ${keypair.name}`),
      ...portsOfProject
        .filter(({ device_owner }) => !device_owner.startsWith('network:'))
        .map(({ name, id }) => `port ${name || id}`),
      ...floating.map(({ floating_ip_address: address }) => `floating IP ${address}`),
    ].sort();
  }

  /** The id of the network or image with this name. */
  async idOf(kind: 'networks' | 'images', name: string): Promise<string> {
    const service = kind === 'networks' ? 'neutron' : 'glance';
    const found = (await this.admin.send(service, 'GET', `/${kind}?name=${name}`))[kind];
    return found[0].id;
  }

  async tenantsNetwork(): Promise<string> {
    return this.idOf('networks', networks.tenants.name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.site[Symbol.asyncDispose]();
  }
}
