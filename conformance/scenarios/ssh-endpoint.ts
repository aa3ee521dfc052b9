import { type JsonObject, numberField, objectsField, textField } from '../wire/json.ts';

export interface SshEndpoint {
  host: string;
  port: number;
  /** Undefined where the instance does not say. */
  username: string | undefined;
}

/** Where an instance says that its SSH is: ssh_port, or the port that is forwarded to 22, or 22 (O: Instance). */
export function sshEndpointOf(shown: JsonObject): SshEndpoint {
  const forward = objectsField(shown, 'port_forwards').find(({ internal_port }) => internal_port === 22);
  return {
    host: textField(shown, 'public_ip') ?? '',
    port: numberField(shown, 'ssh_port') ?? numberField(forward, 'external_port') ?? 22,
    username: textField(shown, 'ssh_username'),
  };
}
