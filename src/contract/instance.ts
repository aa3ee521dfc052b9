import { z } from 'zod';
import { cloudInitSchema } from './cloud-init.ts';
import { sshKeyTextSchema } from './ssh-key.ts';
import type { TransitionTable } from './transitions.ts';
import { regionTokenSchema, timestampSchema, usdPerHourSchema } from './values.ts';

export const instanceStatusSchema = z
  .enum(['PROVISIONING', 'ONLINE', 'STOPPING', 'STOPPED', 'OFFLINE', 'DESTROYING', 'DESTROYED', 'ERROR'])
  .meta({ id: 'InstanceStatus' });
export type InstanceStatus = z.infer<typeof instanceStatusSchema>;

/** O: States and transitions. docs/decisions/0002-instance-states.md settles the transitions that O: leaves open. */
export const instanceTransitions: TransitionTable<InstanceStatus> = {
  // The intent is stored. The machine is being created, or its SSH endpoint is not proved yet.
  PROVISIONING: ['ONLINE', 'ERROR', 'DESTROYING'],
  // Running, and the public endpoint has accepted every injected key once. Latched.
  ONLINE: ['STOPPING', 'STOPPED', 'DESTROYING', 'ERROR'],
  // A stop was accepted; the disk is kept.
  STOPPING: ['STOPPED', 'DESTROYING', 'ERROR'],
  // Resumable. Stays STOPPED while a start is under way, and after a start that failed.
  STOPPED: ['ONLINE', 'OFFLINE', 'DESTROYING', 'ERROR'],
  // Terminal: the platform deleted the stopped machine. A DELETE cleans up the rest.
  OFFLINE: ['DESTROYING'],
  // Left only by proof that the machine and everything that belonged to it are gone.
  DESTROYING: ['DESTROYED'],
  // Terminal: the row is a tombstone, the API answers 404.
  DESTROYED: [],
  // Terminal: `error` says why. A DELETE cleans up the rest.
  ERROR: ['DESTROYING'],
};

/** O: CreateInstanceRequest, ssh_keys: "min 1 item"; the upper bound is ours. */
const MAX_SSH_KEYS = 32;
const MAX_NAME_LENGTH = 255;

/**
 * Control characters, line and paragraph separators, and invisible characters that can alter how text is read, such as
 * direction marks. Allowed: two joiners that some scripts and emoji need, and visible Arabic and Syriac signs.
 */
const CONTROL_CHARACTERS =
  /[[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]--[\u200c\u200d\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2]]/v;

/** A label: any text without control characters. It is never used unescaped in a shell command or a host name. */
export const nameSchema = z
  .string()
  .min(1)
  .max(MAX_NAME_LENGTH)
  .refine((name) => !CONTROL_CHARACTERS.test(name), 'expected text without control or invisible characters')
  .refine((name) => name.isWellFormed(), 'expected well-formed Unicode');

/** O: CreateInstanceRequest. Unknown fields are ignored. */
export const createInstanceRequestSchema = z
  .object({
    configuration_id: z.string().min(1).max(255).meta({ description: 'Configuration.id to deploy.' }),
    region: z.string().min(1).max(63).meta({ description: 'Canonical region token.' }),
    ssh_keys: z
      .array(sshKeyTextSchema)
      .min(1)
      .max(MAX_SSH_KEYS)
      .meta({ description: 'Raw OpenSSH public keys to inject, one key each.' }),
    name: nameSchema.optional(),
    operating_system_image: z
      .string()
      .min(1)
      .max(255)
      .optional()
      .meta({ description: "One of the offer's os_options." }),
    root_disk_size_gb: z.number().positive().max(1_000_000).optional(),
    cloud_init: cloudInitSchema.optional(),
    volume_ids: z
      .array(z.string().min(1).max(255))
      .max(64)
      .optional()
      .meta({ description: 'Volumes to attach at create.' }),
  })
  .meta({ id: 'CreateInstanceRequest' });
export type CreateInstanceRequest = z.infer<typeof createInstanceRequestSchema>;

const portSchema = z.int().min(1).max(65_535);

export const portForwardSchema = z
  .object({ internal_port: portSchema, external_port: portSchema })
  .meta({ id: 'PortForward' });
export type PortForward = z.infer<typeof portForwardSchema>;

/** O: Instance. */
export const instanceSchema = z
  .object({
    id: z.string().min(1),
    name: z.string().optional(),
    configuration_id: z.string().min(1),
    region: regionTokenSchema,
    status: instanceStatusSchema,
    public_ip: z.string().optional(),
    private_ip: z.string().optional(),
    ssh_port: portSchema.optional(),
    ssh_username: z.string().optional(),
    port_forwards: z.array(portForwardSchema).optional(),
    vcpus: z.int().optional(),
    memory_gb: z.number().optional(),
    storage_gb: z.number().optional(),
    gpu_count: z.int().optional(),
    gpu_type: z.string().optional(),
    image: z.string().optional(),
    price_per_hour: usdPerHourSchema.optional(),
    error: z.string().min(1).optional().meta({ description: 'Human-readable detail when status is ERROR.' }),
    created_at: timestampSchema,
    updated_at: timestampSchema,
  })
  .meta({ id: 'Instance' });
export type Instance = z.infer<typeof instanceSchema>;

export const instanceListSchema = z
  .object({ instances: z.array(instanceSchema) })
  .meta({ id: 'InstanceList' });
export type InstanceList = z.infer<typeof instanceListSchema>;
