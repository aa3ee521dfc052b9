import { isIP } from 'node:net';
import type { Instance, PortForward } from '../../contract/instance.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';

/** The address where a user logs in, as the record stores it. */
export type Endpoint = Pick<DeploymentRecord, 'ipAddress' | 'loginUser' | 'sshPort' | 'portForwards'>;

const SSH_PORT = 22;
const HOST_NAME = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i;
/** The pattern is restrictive, because users copy the login name into their shell as part of a command. */
const LOGIN_USER = /^[a-z_][a-z0-9_.-]{0,63}$/i;
const MAX_FORWARDS = 1_000;

/**
 * Returns null if the provider reports no valid address. O: `ssh_username` is optional, so an answer without it keeps
 * the known name.
 */
export function endpointOf(
  instance: Instance,
  { loginUser }: Pick<DeploymentRecord, 'loginUser'>,
): Endpoint | null {
  const { public_ip: ipAddress, ssh_username: user, port_forwards: forwards = [] } = instance;
  if (ipAddress === undefined || (isIP(ipAddress) === 0 && !HOST_NAME.test(ipAddress))) return null;
  const portForwards = forwards.filter(isForward).slice(0, MAX_FORWARDS);
  const forwarded = portForwards.find((it) => it.internal_port === SSH_PORT)?.external_port;
  const sshPort = instance.ssh_port ?? forwarded ?? SSH_PORT;
  return {
    ipAddress,
    sshPort: isPort(sshPort) ? sshPort : SSH_PORT,
    loginUser: user === undefined ? loginUser : LOGIN_USER.test(user) ? user : null,
    portForwards,
  };
}

/** Formats an endpoint, such as `ubuntu@192.0.2.1:22`. */
export function toSshAddress({ ipAddress, sshPort, loginUser }: Endpoint): string {
  const host = ipAddress?.includes(':') ? `[${ipAddress}]` : ipAddress;
  return `${loginUser ?? ''}@${host}:${sshPort}`;
}

export function isSameEndpoint(record: Endpoint, endpoint: Endpoint): boolean {
  return (
    record.ipAddress === endpoint.ipAddress &&
    record.sshPort === endpoint.sshPort &&
    record.loginUser === endpoint.loginUser &&
    JSON.stringify(record.portForwards) === JSON.stringify(endpoint.portForwards)
  );
}

function isForward({ internal_port: internal, external_port: external }: PortForward): boolean {
  return isPort(internal) && isPort(external);
}

function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 1 && port <= 65_535;
}
