import { ORDERS, type Order } from './entries.ts';

interface FileHeadProps {
  order: Order;
  isDown: boolean;
  onOrder: (order: Order, isDown: boolean) => void;
}

const NAMES: Record<Order, string> = { name: 'Name', size: 'Size', time: 'Changed' };

/** Above the columns: a press sorts by one, another turns it around. */
export const FileHead = ({ order, isDown, onOrder }: FileHeadProps) => (
  <fieldset class="file-head" aria-label="Sort by">
    {ORDERS.map(each => {
      const isThis = each === order;
      return (
        <button
          key={each}
          type="button"
          class={`sorter file-${each}`}
          aria-label={isThis ? `${NAMES[each]}, ${isDown ? 'falling' : 'rising'}` : undefined}
          aria-pressed={isThis}
          title={`Sort by ${NAMES[each].toLowerCase()}`}
          onClick={() => onOrder(each, isThis && !isDown)}
        >
          {NAMES[each]}
          {isThis && <span aria-hidden="true">{isDown ? ' ↓' : ' ↑'}</span>}
        </button>
      );
    })}
  </fieldset>
);
