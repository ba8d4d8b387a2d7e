import type { HostEndpoint } from '../service/operations.ts';

type Endpoint = Required<Omit<HostEndpoint, 'name'>>;

/** Where a machine is reached. */
export const EndpointFields = ({ endpoint }: { endpoint?: Endpoint }) => (
  <>
    <div class="two">
      <label class="field">
        <span>Address</span>
        <input
          class="input"
          name="address"
          required
          maxLength={253}
          placeholder="lab.example.org"
          defaultValue={endpoint?.address}
        />
      </label>
      <label class="field">
        <span>Port</span>
        <input
          class="input"
          name="port"
          type="number"
          min="1"
          max="65535"
          defaultValue={endpoint?.port ?? 22}
        />
      </label>
    </div>
    <label class="check">
      <input type="checkbox" name="private" defaultChecked={endpoint?.private} />
      <span>Its address is in a private network, or this machine</span>
    </label>
  </>
);

export const readEndpoint = (fields: FormData): Endpoint => ({
  address: String(fields.get('address') ?? '').trim(),
  port: Number(fields.get('port')) || 22,
  private: fields.has('private'),
});
